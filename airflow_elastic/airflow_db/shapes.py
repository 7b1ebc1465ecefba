"""From a DAG's structure to the shape that the planner works with: classes, requests, durations, widths."""

from __future__ import annotations

from typing import Protocol

from airflow_elastic.airflow_db.structure import DagStructure, TaskStructure
from airflow_elastic.model.demand import DagShape, DurationEstimate, TaskSpec
from airflow_elastic.model.resources import PODS, Resources
from airflow_elastic.model.settings import Settings

__all__ = ["ProfileSource", "class_pools", "dag_shape"]

_ONE_POD = Resources.of({PODS: 1})
_NOTHING_TO_RUN = DurationEstimate(0.0, 0.0, 0.0)


class ProfileSource(Protocol):
    """What is known of tasks from the past (``planning.profile.Profiles``)."""

    def estimate(self, dag_id: str, task_id: str, capacity_class: str) -> DurationEstimate:
        """Return the running time to expect of a task."""

    def width(self, dag_id: str, task_id: str) -> int:
        """Return the number of mapped instances to expect of a task."""


def class_pools(settings: Settings) -> frozenset[str]:
    """Return the Airflow pools that belong to capacity classes."""
    return frozenset(each.airflow_pool for each in settings.classes if each.airflow_pool)


def dag_shape(structure: DagStructure, settings: Settings, profiles: ProfileSource, *, is_paused: bool) -> DagShape:
    """Return the shape of a DAG under these settings and with what is known of its tasks now."""
    return DagShape(
        dag_id=structure.dag_id,
        tasks=tuple(_task_spec(structure.dag_id, task, settings, profiles) for task in structure.tasks),
        max_active_tasks=structure.max_active_tasks,
        max_active_runs=structure.max_active_runs,
        is_paused=is_paused,
    )


def _task_spec(dag_id: str, task: TaskStructure, settings: Settings, profiles: ProfileSource) -> TaskSpec:
    pool_class = settings.class_of_airflow_pool(task.pool)
    capacity = task.capacity
    if task.is_empty:
        needs_node, class_name = False, ""
    elif capacity is not None:
        needs_node = True
        class_name = capacity.capacity_class
        if not class_name and (default := pool_class or settings.capacity_class("")):
            class_name = default.name
    else:
        # In a class's pool without a word of its own: it takes slots there, so it counts as taking room too.
        needs_node, class_name = pool_class is not None, pool_class.name if pool_class else ""
    requests = (capacity.requests if capacity and capacity.requests.amounts else settings.default_requests) + _ONE_POD
    width = 1
    if task.is_mapped:
        width = task.width if task.width is not None else profiles.width(dag_id, task.task_id)
    return TaskSpec(
        task_id=task.task_id,
        upstream=task.upstream,
        trigger_rule=task.trigger_rule,
        needs_node=needs_node,
        capacity_class=class_name,
        node_pools=capacity.node_pools if capacity and needs_node else (),
        requests=requests if needs_node else Resources(),
        is_mapped=task.is_mapped,
        mapped_width=max(1, width),
        pool=task.pool,
        pool_slots=task.pool_slots,
        duration=_NOTHING_TO_RUN if task.is_empty else profiles.estimate(dag_id, task.task_id, class_name),
    )
