"""What runs: DAGs, their runs with the true length of every task, split into days to learn from and days to measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from airflow_elastic.model.resources import CPU, MEMORY, PODS, Resources

__all__ = [
    "DAY",
    "EPOCH",
    "DagTemplate",
    "PlannedRun",
    "TaskTemplate",
    "Workload",
    "default_requests",
    "downstream_of",
    "priorities_of",
    "topological",
]

DAY = 86400.0
EPOCH = 1_767_571_200.0
"""2026-01-05 00:00 UTC, a Monday: where simulated time begins unless a workload says otherwise."""


def default_requests() -> Resources:
    """Return what a task asks for unless its source says otherwise: a quarter of the default node (4 pods a node)."""
    return Resources.of({CPU: 1000, MEMORY: 2 * 2**30, PODS: 1})


@dataclass(frozen=True, slots=True)
class TaskTemplate:
    """One task of a DAG. ``upstream`` are indices of earlier tasks."""

    task_id: str
    upstream: tuple[int, ...]
    seconds: float
    """Typical running time; the true one of a run is in ``PlannedRun.seconds``."""
    requests: Resources = field(default_factory=default_requests)
    capacity_class: str = ""
    map_index: int = -1
    """0 and up: one of the instances of a mapped task; they share a ``task_id``, and their number is known only once
    their upstream has ended."""


@dataclass(frozen=True, slots=True)
class DagTemplate:
    """A DAG; ``tasks`` in topological order. Runs of one DAG may differ in the widths of its mapped tasks."""

    dag_id: str
    tasks: tuple[TaskTemplate, ...]
    max_active_runs: int = 16
    max_active_tasks: int = 0
    """Tasks of a run at work at once, each holding a worker meanwhile; 0: they are deferrable and not limited."""
    schedule: str = ""
    """For people: how often it runs."""

    @property
    def work_seconds(self) -> float:
        """Return the running time of all its tasks together."""
        return sum(task.seconds for task in self.tasks)


@dataclass(frozen=True, slots=True, eq=False)
class PlannedRun:
    """One run: when it is created and how long each of its tasks really runs."""

    dag: DagTemplate
    run_id: str
    starts_at: float
    seconds: tuple[float, ...]
    is_scheduled: bool = True
    """False: nobody knows of it before it starts (a manual run)."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Runs to learn from and, from ``starts_at`` to ``ends_at``, runs to measure."""

    name: str
    training: tuple[PlannedRun, ...]
    test: tuple[PlannedRun, ...]
    starts_at: float
    ends_at: float

    @property
    def dags(self) -> tuple[DagTemplate, ...]:
        """Return the DAGs that have a run, in order of first appearance."""
        return tuple(dict.fromkeys(run.dag for run in (*self.training, *self.test)))

    @property
    def tasks(self) -> int:
        """Return the number of task instances to measure."""
        return sum(len(run.seconds) for run in self.test)

    def without_heaviest(self) -> Workload:
        """Return the same without the DAG that does the most work in the measured days."""
        work: dict[DagTemplate, float] = {}
        for run in self.test:
            work[run.dag] = work.get(run.dag, 0.0) + sum(run.seconds)
        if len(work) < 2:
            return self
        heaviest = max(work, key=lambda dag: (work[dag], dag.dag_id))
        return replace(
            self,
            name=f"{self.name}, without {heaviest.dag_id}",
            training=tuple(run for run in self.training if run.dag is not heaviest),
            test=tuple(run for run in self.test if run.dag is not heaviest),
        )


def topological(upstream: Sequence[Sequence[int]]) -> list[int]:
    """Return an order in which every task comes after its upstream; ties by index.

    Raises:
        ValueError: the graph has a cycle.
    """
    missing = [len(set(ups)) for ups in upstream]
    downstream: list[list[int]] = [[] for _ in upstream]
    for i, ups in enumerate(upstream):
        for up in set(ups):
            downstream[up].append(i)
    order = [i for i, count in enumerate(missing) if not count]
    for i in order:
        for down in downstream[i]:
            missing[down] -= 1
            if not missing[down]:
                order.append(down)
    if len(order) != len(upstream):
        raise ValueError("the tasks depend on each other in a circle")
    return order


def downstream_of(dag: DagTemplate) -> tuple[tuple[int, ...], ...]:
    """Return the direct downstream tasks of every task, by index."""
    downstream: list[list[int]] = [[] for _ in dag.tasks]
    for i, task in enumerate(dag.tasks):
        for up in task.upstream:
            downstream[up].append(i)
    return tuple(tuple(each) for each in downstream)


def priorities_of(dag: DagTemplate) -> tuple[int, ...]:
    """Return every task's priority weight under Airflow's default rule: itself and all that is downstream of it."""
    downstream = downstream_of(dag)
    below = [0] * len(dag.tasks)
    for i in range(len(dag.tasks) - 1, -1, -1):
        for down in downstream[i]:
            below[i] |= below[down] | (1 << down)
    return tuple(mask.bit_count() + 1 for mask in below)
