"""What Airflow wants to run: DAG structure, runs, task instances, and what a run asked for itself."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from airflow_elastic.model.resources import NO_RESOURCES, Resources

__all__ = [
    "DagShape",
    "DurationEstimate",
    "Run",
    "RunAnnotation",
    "RunPhase",
    "TaskInstance",
    "TaskKey",
    "TaskSpec",
    "TaskState",
]


@dataclass(frozen=True, slots=True, order=True)
class TaskKey:
    """Identity of a task instance; ``map_index`` is −1 for a task that is not mapped."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int = -1


class TaskState(StrEnum):
    """Airflow's task instance states; ``NONE`` stands for Airflow's null (not yet schedulable)."""

    NONE = "none"
    SCHEDULED = "scheduled"
    QUEUED = "queued"
    RUNNING = "running"
    RESTARTING = "restarting"
    DEFERRED = "deferred"
    UP_FOR_RETRY = "up_for_retry"
    UP_FOR_RESCHEDULE = "up_for_reschedule"
    SUCCESS = "success"
    FAILED = "failed"
    SKIPPED = "skipped"
    UPSTREAM_FAILED = "upstream_failed"
    REMOVED = "removed"

    @property
    def is_finished(self) -> bool:
        """Tell whether nothing more comes of this task instance (unless a person clears it)."""
        return self in _FINISHED

    @property
    def is_started(self) -> bool:
        """Tell whether a worker or the triggerer has it: its pod exists, or is about to."""
        return self in _STARTED

    @property
    def is_held_back(self) -> bool:
        """Tell whether only Airflow keeps it from starting: its upstream is done."""
        return self in (TaskState.SCHEDULED, TaskState.QUEUED)


_FINISHED = frozenset(
    {TaskState.SUCCESS, TaskState.FAILED, TaskState.SKIPPED, TaskState.UPSTREAM_FAILED, TaskState.REMOVED}
)
_STARTED = frozenset({TaskState.RUNNING, TaskState.RESTARTING, TaskState.DEFERRED})


@dataclass(frozen=True, slots=True)
class DurationEstimate:
    """A duration as three quantiles in seconds, with how many observations stand behind it (0: a prior)."""

    q10_seconds: float
    q50_seconds: float
    q90_seconds: float
    samples: int = 0


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """One task of a DAG's structure. ``needs_node`` is False for what runs on an Airflow worker or waits deferred."""

    task_id: str
    upstream: tuple[str, ...] = ()
    """Direct upstream task ids."""
    trigger_rule: str = "all_success"
    needs_node: bool = False
    capacity_class: str = ""
    node_pools: tuple[str, ...] = ()
    """Pools that this very task is bound to; empty: its class's."""
    requests: Resources = NO_RESOURCES
    """Of one pod."""
    is_mapped: bool = False
    mapped_width: int = 1
    """Expected number of mapped instances before the width is known; 1 for a task that is not mapped."""
    pool: str = "default_pool"
    pool_slots: int = 1
    duration: DurationEstimate = DurationEstimate(60.0, 60.0, 60.0)
    """Running time only, not waiting."""
    holds_worker: bool = False
    """Its process waits on a worker while its pod runs (not deferrable), so it counts against ``max_active_tasks``;
    Airflow does not count deferred tasks there. Tasks without a node always count."""


@dataclass(frozen=True, slots=True)
class DagShape:
    """A DAG's structure as the planner needs it; ``tasks`` in topological order."""

    dag_id: str
    tasks: tuple[TaskSpec, ...]
    max_active_tasks: int = 16
    max_active_runs: int = 16
    is_paused: bool = False


@dataclass(frozen=True, slots=True)
class TaskInstance:
    """A task instance of an active run. Times are Unix seconds or None."""

    task_id: str
    map_index: int = -1
    state: TaskState = TaskState.NONE
    try_number: int = 0
    started_at: float | None = None
    """When Airflow last started it; its pod may start later."""
    ready_at: float | None = None
    """When its upstream was done: scheduled_dttm."""
    resumes: bool = False
    """It was deferred and is on its way back, or back on a worker: its pod, if it had one, has ended or failed."""


class RunPhase(StrEnum):
    """Where a run stands."""

    COMING = "coming"
    """Not created yet: known from its timetable."""
    QUEUED = "queued"
    ACTIVE = "active"


@dataclass(frozen=True, slots=True)
class RunAnnotation:
    """What a run asks for itself (``conf["elastic"]`` or the DAG's param ``elastic``), within the admin's limits."""

    nodes: int = 0
    """Nodes to hold ready from the start of the run (at least; what its tasks need comes on top only beyond it)."""
    capacity_class: str = ""
    hold_seconds: float = 0.0
    """How long they are held from the start; 0: until the run's last task that needs a node has finished."""
    refused: str = ""
    """Why the annotation is not honoured (whole or in part), as one sentence; empty: it is honoured."""


@dataclass(frozen=True, slots=True)
class Run:
    """A coming or active DAG run. ``run_id`` is Airflow's, predicted for a coming run, so that both are one owner."""

    dag_id: str
    run_id: str
    phase: RunPhase
    starts_at: float
    """``run_after`` of a coming run; start (or queue) time of one that exists."""
    shape: DagShape
    tasks: tuple[TaskInstance, ...] = ()
    """Its task instances; empty for a coming run."""
    annotation: RunAnnotation | None = None
    is_backfill: bool = False
