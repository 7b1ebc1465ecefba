"""The simulated Airflow: runs are created by their schedule, tasks become ready, pools gate them, pods run them.

Decisions:
- A task takes its slots from the moment it is queued until Airflow has seen its pod's end.
- A DAG with ``max_active_tasks`` has plain pod tasks: each holds a worker, and a run has so many queued or running at
  once. Without it its tasks are deferrable, and nothing but slots limits how many run (as Airflow counts).
- ``start_seconds`` pass from the slot's grant to the pod (scheduler, worker, triggerer together), ``finish_seconds``
  from the pod's end to the task's success, which makes its downstream tasks ready.
- Tasks go in Airflow's order: by priority weight (itself and all tasks downstream of it), then the older run, then the
  earlier task. A task that needs more slots than are open lets others pass, as in Airflow.
- A pool without a number of slots is unlimited.
- A lost pod is made again after ``start_seconds``; it costs no retry, but begins from zero.
- A task waits for capacity from the moment when its upstream and ``max_active_tasks`` let it run.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from airflow_elastic.model.demand import RunPhase, TaskState
from airflow_elastic.model.resources import Resources
from airflow_elastic.simulator.engine import Engine
from airflow_elastic.simulator.workload import DagTemplate, PlannedRun, downstream_of, priorities_of

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
        pools = [slots_of(task.capacity_class, task.requests) for task in dag.tasks]
        return cls(
            downstream_of(dag),
            priorities_of(dag),
            tuple(name for name, _ in pools),
            tuple(count for _, count in pools),
        )


class SimTask:
    """A task instance."""

    __slots__ = (
        "admitted_at",
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
        """When its upstream was done."""
        self.admitted_at = 0.0
        """When ``max_active_tasks`` let it run too: from then on only capacity is missing."""
        self.created_at: float | None = None
        """When its pod was made."""
        self.wait_seconds: float | None = None
        """How long it waited for capacity; set when its pod first runs."""
        self.tries = 0
        self.lost_seconds = 0.0
        self.pod: object | None = None


class SimRun:
    """A run that exists."""

    __slots__ = (
        "admitted",
        "dirty",
        "ended_at",
        "facts",
        "held",
        "number",
        "phase",
        "planned",
        "started_at",
        "tasks",
        "unfinished",
    )

    def __init__(self, planned: PlannedRun, facts: DagFacts, number: int) -> None:
        self.planned = planned
        self.facts = facts
        self.number = number
        self.phase = RunPhase.QUEUED
        self.started_at = 0.0
        self.ended_at: float | None = None
        self.tasks = [SimTask(self, i, len(task.upstream)) for i, task in enumerate(planned.dag.tasks)]
        self.unfinished = len(self.tasks)
        self.admitted = 0
        """Tasks that ``max_active_tasks`` counts."""
        self.held: list[tuple[int, int]] = []
        """(−priority, index) of ready tasks that it holds back."""
        self.dirty: set[int] = set(range(len(self.tasks)))
        """Tasks that changed since somebody last looked."""


class SimAirflowPool:
    """An Airflow pool; ``slots`` None: unlimited."""

    def __init__(self, name: str, slots: int | None) -> None:
        self.name = name
        self.slots = slots
        self.queued = self.running = self.deferred = self.scheduled = 0
        self.heap: list[tuple[int, float, int, int, SimTask]] = []
        """Tasks that wait for a slot, in Airflow's order."""

    @property
    def open(self) -> int:
        """Return the slots that are free."""
        return 1_000_000_000 if self.slots is None else self.slots - self.queued - self.running - self.deferred


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
            self._admit(run)
            if not run.tasks:
                self._end_run(run)
        self.grant()

    def _ready(self, task: SimTask) -> None:
        run = task.run
        task.ready_at = self.engine.now
        self._set(task, TaskState.SCHEDULED)
        self.pools[run.facts.airflow_pool[task.index]].scheduled += run.facts.slots[task.index]
        heapq.heappush(run.held, (-run.facts.priority[task.index], task.index))

    def _admit(self, run: SimRun) -> None:
        """Let tasks of a run wait for slots, as far as ``max_active_tasks`` allows."""
        limit = run.planned.dag.max_active_tasks
        while run.held and (not limit or run.admitted < limit):
            priority, index = heapq.heappop(run.held)
            task = run.tasks[index]
            task.admitted_at = self.engine.now
            run.admitted += 1
            pool = self.pools[run.facts.airflow_pool[index]]
            heapq.heappush(pool.heap, (priority, run.planned.starts_at, run.number, index, task))

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
            if run.planned.dag.max_active_tasks:
                pool.running += slots
            else:
                pool.deferred += slots
        task.created_at = self.engine.now
        task.tries += 1
        self._set(task, TaskState.RUNNING if run.planned.dag.max_active_tasks else TaskState.DEFERRED)
        self._on_start(task)

    def pod_runs(self, task: SimTask) -> None:
        """A task's pod has a node."""
        if task.wait_seconds is None:
            task.wait_seconds = max(self.engine.now - task.admitted_at - self.start_seconds, 0.0)
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
        pool, slots = self.pools[run.facts.airflow_pool[task.index]], run.facts.slots[task.index]
        if task.state is TaskState.RUNNING:
            pool.running -= slots
        else:
            pool.deferred -= slots
        self._set(task, TaskState.SUCCESS)
        self._on_finished(task)
        run.unfinished -= 1
        run.admitted -= 1
        for down in run.facts.downstream[task.index]:
            after = run.tasks[down]
            after.missing -= 1
            if not after.missing:
                self._ready(after)
        self._admit(run)
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
