"""The skyline of a run: when each unfinished task is expected to start and to end, as a median and a spread.

Starts follow from the graph and the trigger rules along the path that ends last; spreads add up along it as
independent errors do (root of the sum of squares), so a chain of ten tasks is not ten times as uncertain as one.
``max_active_tasks`` holds back what Airflow counts: tasks on a worker. A task whose pod runs while the task is deferred
is not counted by Airflow and so not held back here (``TaskSpec.holds_worker``).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from airflow_elastic.model.demand import DagShape, TaskInstance, TaskSpec, TaskState
from airflow_elastic.planning.outcome import Outcome, Wait, judge
from airflow_elastic.planning.quantiles import longest_of, remaining, sane

__all__ = ["Group", "GroupKind", "Moment", "PodState", "Progress", "Skyline", "early", "late", "progress_of", "project"]

LARGEST_GROUP = 20_000
"""A fan-out beyond this fills any pool's maximum; counting it exactly would only cost time."""
_FINISHING = (0.5, 5.0, 20.0)
"""(q10, q50, q90) seconds in which a task whose pod has ended is picked up and closed by a worker."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A time in seconds with its spread: squares of (q50 − q10) and of (q90 − q50)."""

    at: float
    low: float = 0.0
    high: float = 0.0

    def after(self, quantiles: tuple[float, float, float]) -> Moment:
        """Return the moment one duration later."""
        q10, q50, q90 = quantiles
        return Moment(self.at + q50, self.low + (q50 - q10) ** 2, self.high + (q90 - q50) ** 2)


class GroupKind(Enum):
    """Why a group of task instances wants a node."""

    RUNNING = "running"
    """Started: its pod exists or is about to."""
    READY = "ready"
    """Only Airflow or a missing node keeps it from starting."""
    LATER = "later"
    """Its upstream has not ended."""


@dataclass(frozen=True, slots=True)
class Group:
    """``count`` instances of one task that want a node over the same time."""

    spec: int
    """Index in ``shape.tasks``."""
    count: int
    kind: GroupKind
    start: Moment
    end: Moment
    map_index: int | None = None
    """Of the one instance that a running group stands for."""


@dataclass(frozen=True, slots=True)
class Skyline:
    """What remains of a run. Times are on the axis of ``base`` given to ``project``."""

    groups: tuple[Group, ...]
    ends_at: float
    """Median end of the whole run."""
    last_need_at: float
    """Median end of its last task that needs a node; ``base`` where none does."""


@dataclass(frozen=True, slots=True)
class Progress:
    """One task's instances by where they stand."""

    outcome: Outcome | None = None
    """Set when every instance has ended."""
    running: tuple[tuple[int, float], ...] = ()
    """(map index, seconds run so far)"""
    ready: int = 0
    finishing: int = 0
    later: int = 0


@dataclass(slots=True)
class _Graph:
    """Indices of upstream and downstream tasks; names that the DAG does not have are left out."""

    upstream: list[list[int]] = field(default_factory=list)
    downstream: list[list[int]] = field(default_factory=list)

    @classmethod
    def of(cls, tasks: Sequence[TaskSpec]) -> _Graph:
        index = {task.task_id: i for i, task in enumerate(tasks)}
        graph = cls([], [[] for _ in tasks])
        for i, task in enumerate(tasks):
            ups = [index[name] for name in task.upstream if name in index and name != task.task_id]
            graph.upstream.append(ups)
            for up in ups:
                graph.downstream[up].append(i)
        return graph


@dataclass(frozen=True, slots=True)
class PodState:
    """What the pod (or the process) of a task instance does."""

    is_live: bool
    """False: it has ended, and the task only waits for a worker to close it."""
    elapsed_seconds: float = 0.0


def _untouched(spec: TaskSpec) -> Progress:
    return Progress(later=min(max(spec.mapped_width, 0), LARGEST_GROUP) if spec.is_mapped else 1)


def progress_of(spec: TaskSpec, instances: Sequence[TaskInstance], pods: Mapping[int, PodState]) -> Progress:
    """Sum up one task's instances; ``pods`` by map index, where there is one."""
    unexpanded = spec.is_mapped and all(each.map_index < 0 and each.state is TaskState.NONE for each in instances)
    if not instances or unexpanded:
        return _untouched(spec)
    running: list[tuple[int, float]] = []
    ready = finishing = later = failed = skipped = done = 0
    for each in instances:
        state = each.state
        if state is TaskState.SUCCESS:
            done += 1
        elif state in (TaskState.FAILED, TaskState.UPSTREAM_FAILED):
            failed += 1
        elif state in (TaskState.SKIPPED, TaskState.REMOVED):
            skipped += 1
        elif (pod := pods.get(each.map_index)) is not None and pod.is_live:
            running.append((each.map_index, pod.elapsed_seconds))
        elif pod is not None or (each.resumes and state is not TaskState.NONE):
            finishing += 1
        elif state is TaskState.NONE:
            later += 1
        elif state.is_started:
            running.append((each.map_index, 0.0))
        else:
            ready += 1
    if done + failed + skipped == len(instances):
        return Progress(outcome=Outcome.FAILED if failed else Outcome.SUCCESS if done else Outcome.SKIPPED)
    return Progress(None, tuple(running), ready, finishing, later)


def project(shape: DagShape, base: float, progress: Sequence[Progress] | None = None) -> Skyline:
    """Return the skyline of a run that starts (or stands) at ``base``; without progress nothing of it has begun."""
    return _Projection(shape, base, progress).run()


class _Projection:
    """One walk through the graph in order of readiness."""

    def __init__(self, shape: DagShape, base: float, progress: Sequence[Progress] | None) -> None:
        self.tasks = shape.tasks
        self.base = Moment(base)
        self.progress = progress or [_untouched(task) for task in shape.tasks]
        self.graph = _Graph.of(shape.tasks)
        self.outcomes: list[Outcome | None] = [None] * len(self.tasks)
        self.ends: list[Moment] = [self.base] * len(self.tasks)
        self.groups: list[Group] = []
        counted = sum(
            len(p.running) + p.ready + p.finishing + p.later
            for p, task in zip(self.progress, self.tasks, strict=True)
            if _is_counted(task)
        )
        limit = max(shape.max_active_tasks, 1)
        self.lanes: list[float] | None = None
        if counted > limit:
            taken = [
                base + remaining(sane(task.duration), elapsed)[1]
                for task, p in zip(self.tasks, self.progress, strict=True)
                if _is_counted(task)
                for _, elapsed in p.running
            ]
            self.lanes = [base] * max(limit - len(taken), 0) + sorted(taken)
            heapq.heapify(self.lanes)

    def run(self) -> Skyline:
        missing = [len(ups) for ups in self.graph.upstream]
        heap = [(self.base.at, i) for i, count in enumerate(missing) if not count]
        heapq.heapify(heap)
        while heap:
            _, i = heapq.heappop(heap)
            self._place(i)
            for down in self.graph.downstream[i]:
                missing[down] -= 1
                if not missing[down]:
                    heapq.heappush(heap, (self._ready(down)[1].at, down))
        last = max((group.end.at for group in self.groups), default=self.base.at)
        return Skyline(tuple(self.groups), max((end.at for end in self.ends), default=self.base.at), last)

    def _ready(self, i: int) -> tuple[Outcome | None, Moment]:
        """Return (outcome without running or None, the moment at which task ``i`` is ready or settled)."""
        ups = self.graph.upstream[i]
        outcomes = [self.outcomes[up] or Outcome.SUCCESS for up in ups]
        outcome, wait = judge(self.tasks[i].trigger_rule, outcomes)
        if wait is Wait.NONE:
            return outcome, self.base
        if wait is Wait.LAST:
            return outcome, max((self.ends[up] for up in ups), key=_at)
        wanted = {Wait.FIRST_SUCCESS: Outcome.SUCCESS, Wait.FIRST_FAILURE: Outcome.FAILED}.get(wait)
        chosen = [
            self.ends[up]
            for up, each in zip(ups, outcomes, strict=True)
            if each is wanted or (wanted is None and each is not Outcome.SKIPPED)
        ]
        return outcome, min(chosen, key=_at)

    def _place(self, i: int) -> None:
        task, progress = self.tasks[i], self.progress[i]
        if progress.outcome is not None:
            self.outcomes[i] = progress.outcome
            return
        quantiles = sane(task.duration)
        ends: list[Moment] = []
        for map_index, elapsed in progress.running:
            ends.append(self._take(i, 1, GroupKind.RUNNING, self.base, remaining(quantiles, elapsed), map_index))
        if progress.finishing:
            ends.append(self.base.after(_FINISHING))
        if progress.ready:
            ends.append(self._take(i, progress.ready, GroupKind.READY, self.base, quantiles))
        not_run, ready = self._ready(i) if progress.later else (None, self.base)
        if progress.later and not_run is None:
            ends.append(self._take(i, progress.later, GroupKind.LATER, ready, quantiles))
        elif progress.later:
            ends.append(ready)
        only_settled = not_run is not None and len(ends) == 1
        self.outcomes[i] = not_run if only_settled else Outcome.SUCCESS
        # A mapped task of width zero is skipped by Airflow; it ends with its upstream.
        self.ends[i] = max(ends, key=_at) if ends else self._ready(i)[1]

    def _take(
        self,
        i: int,
        count: int,
        kind: GroupKind,
        ready: Moment,
        quantiles: tuple[float, float, float],
        map_index: int | None = None,
    ) -> Moment:
        """Place ``count`` instances from ``ready`` on and return the end of the last of them."""
        task = self.tasks[i]
        if self.lanes is None or kind is GroupKind.RUNNING or not _is_counted(task):
            if task.needs_node:
                self.groups.append(Group(i, count, kind, ready, ready.after(quantiles), map_index))
            return ready.after(longest_of(quantiles, count))
        last = ready
        waves: dict[float, int] = {}
        for _ in range(count):
            start = max(heapq.heappop(self.lanes), ready.at)
            heapq.heappush(self.lanes, start + quantiles[1])
            waves[start] = waves.get(start, 0) + 1
        for start, width in waves.items():
            moment = Moment(start, ready.low, ready.high)
            # What is ready but held back by max_active_tasks wants its node later, not now.
            wave_kind = GroupKind.LATER if kind is GroupKind.READY and start > self.base.at else kind
            if task.needs_node:
                self.groups.append(Group(i, width, wave_kind, moment, moment.after(quantiles), map_index))
            last = max(last, moment.after(longest_of(quantiles, width)), key=_at)
        return last


def _is_counted(task: TaskSpec) -> bool:
    """Tell whether Airflow counts the running task against ``max_active_tasks``."""
    return task.holds_worker or not task.needs_node


def _at(moment: Moment) -> float:
    return moment.at


def early(moment: Moment, factor: float, not_before: float) -> float:
    """Return the early side of a moment: ``factor`` spreads before the median."""
    return max(moment.at - factor * math.sqrt(moment.low), not_before)


def late(moment: Moment) -> float:
    """Return the late side of a moment, its 90th percentile."""
    return moment.at + math.sqrt(moment.high)
