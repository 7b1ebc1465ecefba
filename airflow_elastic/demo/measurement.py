"""What the reporter works from: facts gathered from outside the controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_elastic.demo.cluster_history import ClusterHistory
from airflow_elastic.model.resources import parse_quantity

__all__ = ["MeasuredClass", "Measurement", "RunRow", "TaskRow", "classes_of", "minimum_nodes"]

FAILED_STATES = frozenset({"failed", "upstream_failed"})
FINISHED_RUN_STATES = frozenset({"success", "failed"})


@dataclass(frozen=True, slots=True)
class MeasuredClass:
    """What a capacity class means for slots: its Airflow pool, its node pools, the shape of one slot."""

    name: str
    airflow_pool: str
    node_pools: tuple[str, ...]
    slot_shape: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RunRow:
    """A DAG run; times are Unix seconds."""

    dag_id: str
    run_id: str
    run_type: str
    state: str
    run_after: float
    started_at: float | None
    ended_at: float | None

    @property
    def is_finished(self) -> bool:
        """Tell whether it ended, well or not."""
        return self.state in FINISHED_RUN_STATES


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task instance at the end."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    state: str
    try_number: int

    @property
    def failed(self) -> bool:
        """Tell whether it failed or never ran because another did."""
        return self.state in FAILED_STATES


@dataclass(frozen=True, slots=True)
class Measurement:
    """Everything between ``started_at`` and ``ended_at`` (Unix seconds)."""

    history: ClusterHistory
    started_at: float
    ended_at: float
    classes: tuple[MeasuredClass, ...]
    min_nodes: Mapping[str, int]
    slot_samples: Sequence[tuple[float, Mapping[str, int]]] = ()
    """(time, Airflow pool → slots), each valid until the next."""
    reserved_samples: Sequence[tuple[float, Mapping[str, int]]] = ()
    """(time, node pool → nodes that reservations in force hold), each valid until the next."""
    runs: Sequence[RunRow] = ()
    tasks: Sequence[TaskRow] = ()
    first_tasks: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """dag_id → ids of the tasks without upstream."""


def classes_of(capacity: Mapping[str, Any]) -> tuple[MeasuredClass, ...]:
    """Return the classes of a capacity file's content, read by nothing but this."""
    return tuple(
        MeasuredClass(
            name,
            str(entry["airflow_pool"]),
            tuple(entry["node_pools"]),
            {resource: parse_quantity(text, resource=resource) for resource, text in entry["slot_shape"].items()},
        )
        for name, entry in capacity["classes"].items()
    )


def minimum_nodes(capacity: Mapping[str, Any]) -> dict[str, int]:
    """Return node pool → min_nodes of a capacity file's content."""
    return {name: int(entry.get("min_nodes", 0)) for name, entry in capacity["node_pools"].items()}
