"""This installation's own past as a workload: what would have happened with other nodes, boot times or policies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from airflow_elastic.model.demand import DagShape, TaskSpec
from airflow_elastic.simulator.workload import DAY, DagTemplate, PlannedRun, TaskTemplate, Workload

__all__ = ["PastTask", "workload_from_history"]

_SHORTEST_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class PastTask:
    """A task instance that succeeded."""

    dag_id: str
    run_id: str
    run_starts_at: float
    """When the run could start at the earliest (``run_after``)."""
    is_scheduled: bool
    task_id: str
    map_index: int
    seconds: float
    """Its last try, from start to end."""


def workload_from_history(
    tasks: Iterable[PastTask], shapes: Mapping[str, DagShape], *, days_test: float, name: str = "own history"
) -> Workload:
    """Return the past as a workload; the last ``days_test`` days are measured, what lies before is learnt from.

    A task that did not succeed in a run is left out of it; those downstream then wait for its upstream instead. Tasks
    that need no node run nowhere: they only pass their order on. Runs of DAGs that are not in ``shapes`` are left out.

    Raises:
        ValueError: no task of the past belongs to a DAG that needs nodes.
    """
    runs: dict[tuple[str, str], list[PastTask]] = {}
    for task in tasks:
        if task.dag_id in shapes:
            runs.setdefault((task.dag_id, task.run_id), []).append(task)
    planned = [each for some in runs.values() if (each := _run(shapes[some[0].dag_id], some)) is not None]
    if not planned:
        raise ValueError("no task of the past ran in a DAG that needs nodes")
    planned.sort(key=lambda run: (run.starts_at, run.dag.dag_id, run.run_id))
    ends_at = planned[-1].starts_at + 1.0
    starts_at = max(ends_at - days_test * DAY, planned[0].starts_at)
    training = tuple(run for run in planned if run.starts_at < starts_at)
    test = tuple(run for run in planned if run.starts_at >= starts_at)
    return Workload(name, training, test, starts_at, ends_at)


def _run(shape: DagShape, some: list[PastTask]) -> PlannedRun | None:
    by_task: dict[str, list[PastTask]] = {}
    for each in some:
        by_task.setdefault(each.task_id, []).append(each)
    templates: list[TaskTemplate] = []
    seconds: list[float] = []
    last: dict[str, tuple[int, ...]] = {}
    """Of each task: the templates whose end is its end."""
    for spec in shape.tasks:
        upstream = tuple(dict.fromkeys(i for up in spec.upstream for i in last.get(up, ())))
        instances = sorted(by_task.get(spec.task_id, ()), key=lambda each: each.map_index)
        if not instances or not spec.needs_node:
            last[spec.task_id] = upstream
            continue
        first = len(templates)
        for each in instances:
            templates.append(_template(spec, each, upstream))
            seconds.append(max(each.seconds, _SHORTEST_SECONDS))
        last[spec.task_id] = tuple(range(first, len(templates)))
    if not templates:
        return None
    counts = any(spec.holds_worker for spec in shape.tasks)
    dag = DagTemplate(
        shape.dag_id,
        tuple(templates),
        max_active_runs=max(shape.max_active_runs, 1),
        max_active_tasks=max(shape.max_active_tasks, 1) if counts else 0,
    )
    return PlannedRun(dag, some[0].run_id, some[0].run_starts_at, tuple(seconds), some[0].is_scheduled)


def _template(spec: TaskSpec, each: PastTask, upstream: tuple[int, ...]) -> TaskTemplate:
    index = each.map_index if spec.is_mapped else -1
    return TaskTemplate(spec.task_id, upstream, each.seconds, spec.requests, spec.capacity_class, index)
