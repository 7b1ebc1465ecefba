"""The simulated Airflow: runs are created by their schedule, tasks become ready, pools gate them, pods run them.

Decisions:
- Every task is a deferrable pod task: it takes its slots from the moment it is queued until Airflow has seen its pod's
  end; nothing else limits how many run (Airflow does not count deferred tasks against ``max_active_tasks``).
- ``start_seconds`` pass from the slot's grant to the pod (scheduler, worker, triggerer together), ``finish_seconds`` from
  the pod's end to the task's success, which makes its downstream tasks ready.
- Slots are given in Airflow's order: by the task's priority weight (itself and all tasks downstream of it), then the older
  run, then the earlier task. A task that needs more slots than are open lets others pass, as in Airflow.
- A pool without a number of slots is unlimited.
- A lost pod is made again after ``start_seconds``; it costs no retry, but begins from zero.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from airflow_elastic.model.demand import RunPhase, TaskState
from airflow_elastic.model.resources import Resources
from airflow_elastic.simulator.engine import Engine
from airflow_elastic.simulator.workload import DagTemplate, PlannedRun

__all__ = ["DagFacts", "SimAirflow", "SimAirflowPool", "SimRun", "SimTask"]


@dataclass(frozen=True, slots=True)
class DagFacts:
    """What the simulation needs of a DAG, worked out once."""

    downstream: tuple[tuple[int, ...], ...]
    priority: tuple[int, ...]
    airflow_pool: tuple[str, ...]
    slots: tuple[int, ...]

    @classmethod
    def of(cls, dag: DagTemplate, slots_of: Callable[[str, Resources], tuple[str, int]]) -> DagFacts:
        """Work out a DAG's facts; ``slots_of`` maps (class, requests) to (Airflow pool, slots)."""
        downstream: list[list[int]] = [[] for _ in dag.tasks]
        for i, task in enumerate(dag.tasks):
            for up in task.upstream:
                downstream[up].append(i)
        below: list[int] = [0] * len(dag.tasks)
        for i in range(len(dag.tasks) - 1, -1, -1):
            for down in downstream[i]:
                below[i] |= below[down] | (1 << down)
        pools = [slots_of(task.capacity_class, task.requests) for task in dag.tasks]
        return cls(
            tuple(tuple(each) for each in downstream),
            tuple(mask.bit_count() + 1 for mask in below),
            tuple(name for name, _ in pools),
            tuple(count for _, count in pools),
        )


class SimTask:
    """A task instance."""

    __slots__ = (
        "created_at",
        "index",
        "lost_seconds",
        "missing",
        "pod",
        "ready_at",
        "run",
        "state",
        "tries",
        "wait_seconds",
    )

    def __init__(self, run: SimRun, index: int, missing: int) -> None:
        self.run = run
        self.index = index
        self.missing = missing
        self.state = TaskState.NONE
        self.ready_at = 0.0
        self.created_at: float | None = None
        """When its pod was made."""
        self.wait_seconds: float | None = None
        """How long it waited for capacity; set when its pod first runs."""
        self.tries = 0
        self.lost_seconds = 0.0
        self.pod: object | None = None


class SimRun:
    """A run that exists."""

    __slots__ = ("dirty", "ended_at", "facts", "number", "phase", "planned", "started_at", "tasks", "unfinished")

    def __init__(self, planned: PlannedRun, facts: DagFacts, number: int) -> None:
        self.planned = planned
        self.facts = facts
        self.number = number
        self.phase = RunPhase.QUEUED
        self.started_at = 0.0
        self.ended_at: float | None = None
        self.tasks = [SimTask(self, i, len(task.upstream)) for i, task in enumerate(planned.dag.tasks)]
        self.unfinished = len(self.tasks)
        self.dirty: set[int] = set(range(len(self.tasks)))
        """Tasks that changed since somebody last looked."""


class SimAirflowPool:
    """An Airflow pool; ``slots`` None: unlimited."""

    def __init__(self, name: str, slots: int | None) -> None:
        self.name = name
        self.slots = slots
        self.queued = self.deferred = self.scheduled = 0
        self.heap: list[tuple[int, float, int, int, SimTask]] = []
        """Tasks that wait for a slot, in Airflow's order."""

    @property
    def open(self) -> int:
        """Return the slots that are free."""
        return 1_000_000_000 if self.slots is None else self.slots - self.queued - self.deferred


class SimAirflow:
    """Scheduler, worker and triggerer in one."""

    def __init__(
        self,
        engine: Engine,
        runs: Sequence[PlannedRun],
        pools: Mapping[str, SimAirflowPool],
        slots_of: Callable[[str, Resources], tuple[str, int]],
        on_start: Callable[[SimTask], None],
        on_finished: Callable[[SimTask], None],
        *,
        start_seconds: float,
        finish_seconds: float,
    ) -> None:
        self.engine = engine
        self.pools = pools
        self.start_seconds = start_seconds
        self.finish_seconds = finish_seconds
        self.changed = False
        self.active: dict[int, SimRun] = {}
        """Runs that are queued or active, by number."""
        self.finished: list[SimRun] = []
        self.left = len(runs)
        self._on_start = on_start
        self._on_finished = on_finished
        self._facts = {dag: DagFacts.of(dag, slots_of) for dag in dict.fromkeys(run.dag for run in runs)}
        self._active_of: dict[str, int] = {}
        self._queued_of: dict[str, list[SimRun]] = {}
        for number, planned in enumerate(runs):
            engine.at(planned.starts_at, self._create, planned, number)

    def _create(self, planned: PlannedRun, number: int) -> None:
        run = SimRun(planned, self._facts[planned.dag], number)
        self.active[number] = run
        self.changed = True
        self._queued_of.setdefault(planned.dag.dag_id, []).append(run)
        self._start_runs(planned.dag)

    def _start_runs(self, dag: DagTemplate) -> None:
        queued = self._queued_of.get(dag.dag_id, [])
        while queued and self._active_of.get(dag.dag_id, 0) < dag.max_active_runs:
            run = queued.pop(0)
            self._active_of[dag.dag_id] = self._active_of.get(dag.dag_id, 0) + 1
            run.phase, run.started_at = RunPhase.ACTIVE, self.engine.now
            for task in run.tasks:
                if not task.missing:
                    self._ready(task)
            if not run.tasks:
                self._end_run(run)
        self.grant()

    def _ready(self, task: SimTask) -> None:
        run = task.run
        task.ready_at = self.engine.now
        self._set(task, TaskState.SCHEDULED)
        pool = self.pools[run.facts.airflow_pool[task.index]]
        pool.scheduled += run.facts.slots[task.index]
        key = (-run.facts.priority[task.index], run.planned.starts_at, run.number, task.index)
        heapq.heappush(pool.heap, (*key, task))

    def _set(self, task: SimTask, state: TaskState) -> None:
        task.state = state
        task.run.dirty.add(task.index)
        self.changed = True

    def grant(self) -> None:
        """Give open slots to tasks that wait for them."""
        for pool in self.pools.values():
            passed = []
            while pool.heap and pool.open > 0:
                entry = heapq.heappop(pool.heap)
                task = entry[-1]
                slots = task.run.facts.slots[task.index]
                if slots > pool.open:
                    passed.append(entry)
                    continue
                pool.scheduled -= slots
                pool.queued += slots
                self._set(task, TaskState.QUEUED)
                self.engine.at(self.engine.now + self.start_seconds, self._make_pod, task)
            for entry in passed:
                heapq.heappush(pool.heap, entry)

    def _make_pod(self, task: SimTask) -> None:
        run = task.run
        if task.state is TaskState.QUEUED:
            pool, slots = self.pools[run.facts.airflow_pool[task.index]], run.facts.slots[task.index]
            pool.queued -= slots
            pool.deferred += slots
        task.created_at = self.engine.now
        task.tries += 1
        self._set(task, TaskState.DEFERRED)
        self._on_start(task)

    def pod_runs(self, task: SimTask) -> None:
        """A task's pod has a node."""
        if task.wait_seconds is None:
            task.wait_seconds = max(self.engine.now - task.ready_at - self.start_seconds, 0.0)
        task.run.dirty.add(task.index)

    def pod_ended(self, task: SimTask) -> None:
        """A task's pod has succeeded; Airflow learns of it a little later."""
        task.run.dirty.add(task.index)
        self.changed = True
        self.engine.at(self.engine.now + self.finish_seconds, self._succeed, task)

    def pod_lost(self, task: SimTask) -> None:
        """A task's pod is gone with its node: it is made again."""
        task.run.dirty.add(task.index)
        self.changed = True
        self.engine.at(self.engine.now + self.start_seconds, self._make_pod, task)

    def _succeed(self, task: SimTask) -> None:
        run = task.run
        self._set(task, TaskState.SUCCESS)
        self.pools[run.facts.airflow_pool[task.index]].deferred -= run.facts.slots[task.index]
        self._on_finished(task)
        run.unfinished -= 1
        for down in run.facts.downstream[task.index]:
            after = run.tasks[down]
            after.missing -= 1
            if not after.missing:
                self._ready(after)
        if not run.unfinished:
            self._end_run(run)
        self.grant()

    def _end_run(self, run: SimRun) -> None:
        run.ended_at = self.engine.now
        del self.active[run.number]
        self.finished.append(run)
        self.left -= 1
        self._active_of[run.planned.dag.dag_id] -= 1
        self._start_runs(run.planned.dag)
