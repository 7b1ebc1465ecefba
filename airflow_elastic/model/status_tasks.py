"""The published document's part on task instances: what each waiting or started one stands on."""

from __future__ import annotations

from typing import Any

from airflow_elastic.model.demand import TaskKey
from airflow_elastic.model.snapshot import Pod, Snapshot

__all__ = ["MAX_PUBLISHED_TASKS", "task_entries"]

MAX_PUBLISHED_TASKS = 2000
"""The document is written each second: a run of ten thousand mapped tasks must not make it grow without end."""


def task_entries(snapshot: Snapshot, limit: int = MAX_PUBLISHED_TASKS) -> tuple[list[dict[str, Any]], int]:
    """Return at most ``limit`` held-back and started task instances as plain JSON, and how many more there are.

    ``pod`` is None where no pod of the task instance is known. Times are Unix seconds.
    """
    pods = {pod.owner: pod for pod in snapshot.pods if pod.owner and pod.takes_room}
    entries: list[dict[str, Any]] = []
    left_out = 0
    for run in snapshot.runs:
        specs = {spec.task_id: spec for spec in run.shape.tasks}
        for task in run.tasks:
            if not (task.state.is_held_back or task.state.is_started):
                continue
            if len(entries) >= limit:
                left_out += 1
                continue
            spec = specs.get(task.task_id)
            entries.append(
                {
                    "dag_id": run.dag_id,
                    "run_id": run.run_id,
                    "task_id": task.task_id,
                    "map_index": task.map_index,
                    "state": task.state.value,
                    "started_at": task.started_at,
                    "ready_at": task.ready_at,
                    "needs_node": spec.needs_node if spec else None,
                    "capacity_class": spec.capacity_class if spec else "",
                    "node_pools": list(spec.node_pools) if spec else [],
                    "airflow_pool": spec.pool if spec else "",
                    "pool_slots": spec.pool_slots if spec else 1,
                    "pod": _pod(pods.get(TaskKey(run.dag_id, run.run_id, task.task_id, task.map_index))),
                }
            )
    return entries, left_out


def _pod(pod: Pod | None) -> dict[str, Any] | None:
    if pod is None:
        return None
    return {
        "phase": pod.phase.value,
        "node": pod.node,
        "created_at": pod.created_at,
        "started_at": pod.started_at,
        "unschedulable_since": pod.unschedulable_since,
    }
