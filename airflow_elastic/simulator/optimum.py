"""What any policy could reach: the cheapest plan in which no task waits (OPT₀) and a bound for plans that wait (LB1).

The ideal course of a workload has every task start when it is ready (plus Airflow's own start latency). From it comes
D(t), the nodes needed at a time: the largest ratio over the resources of what runs to what a node offers, rounded up.
That lets pods move between nodes as if they were liquid, so it is a bound that pinned pods may not reach.

OPT₀ = ∫ D dt + Σ over levels ℓ of [B + Σ over gaps min(gap, B)], with B the boot time in node-seconds: each level of D
is one node that starts once, and in each gap either stays or goes and starts again.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from airflow_elastic.model.resources import Resources
from airflow_elastic.planning.vectors import room_amount
from airflow_elastic.simulator.workload import DagTemplate, PlannedRun, downstream_of, priorities_of

__all__ = ["Ideal", "IdealTask", "ideal_course", "lower_bound_1", "nodes_over_time", "opt_0", "share_of_node"]

_EPSILON = 1e-9


@dataclass(frozen=True, slots=True)
class IdealTask:
    """When a task would run if nothing were ever missing."""

    start: float
    end: float
    requests: Resources
    capacity_class: str


@dataclass(frozen=True, slots=True)
class Ideal:
    """The ideal course of a workload, and when each run would end (by position of the run)."""

    tasks: tuple[IdealTask, ...]
    run_ends: tuple[float, ...]


def ideal_course(runs: Sequence[PlannedRun], start_seconds: float, finish_seconds: float) -> Ideal:
    """Return when everything would run with unlimited capacity.

    A DAG's ``max_active_runs`` and ``max_active_tasks`` are kept; among ready tasks those with most downstream go
    first, as in Airflow. ``start_seconds``: from ready to the pod; ``finish_seconds``: from its end to success.
    """
    active: dict[str, list[float]] = {}
    tasks: list[IdealTask] = []
    run_ends: list[float] = []
    graphs: dict[DagTemplate, tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]] = {}
    for run in runs:
        ends = active.setdefault(run.dag.dag_id, [])
        begin = run.starts_at
        while ends and (ends[0] <= begin or len(ends) >= run.dag.max_active_runs):
            begin = max(begin, heapq.heappop(ends))
        if run.dag not in graphs:
            graphs[run.dag] = downstream_of(run.dag), priorities_of(run.dag)
        end = _ideal_run(run, begin, start_seconds, finish_seconds, graphs[run.dag], tasks)
        run_ends.append(end)
        heapq.heappush(ends, end)
    return Ideal(tuple(tasks), tuple(run_ends))


def _ideal_run(
    run: PlannedRun,
    begin: float,
    start_seconds: float,
    finish_seconds: float,
    graph: tuple[tuple[tuple[int, ...], ...], tuple[int, ...]],
    tasks: list[IdealTask],
) -> float:
    """Add one run's tasks to ``tasks``; return when it ends."""
    dag, (downstream, priority) = run.dag, graph
    limit = dag.max_active_tasks or len(dag.tasks)
    missing = [len(task.upstream) for task in dag.tasks]
    ready = [(-priority[i], i) for i, count in enumerate(missing) if not count]
    heapq.heapify(ready)
    going: list[tuple[float, int]] = []
    now = begin
    while ready or going:
        while ready and len(going) < limit:
            _, i = heapq.heappop(ready)
            start = now + start_seconds
            end = start + run.seconds[i]
            tasks.append(IdealTask(start, end, dag.tasks[i].requests, dag.tasks[i].capacity_class))
            heapq.heappush(going, (end + finish_seconds, i))
        now = going[0][0]
        while going and going[0][0] <= now:
            _, i = heapq.heappop(going)
            for down in downstream[i]:
                missing[down] -= 1
                if not missing[down]:
                    heapq.heappush(ready, (-priority[down], down))
    return now


def share_of_node(requests: Resources, shape: Resources) -> float:
    """Return the largest share of a node that a pod takes of any resource."""
    return max((amount / max(room_amount(shape, name), 1) for name, amount in requests.amounts), default=0.0)


def nodes_over_time(tasks: Iterable[IdealTask], shape: Resources) -> list[tuple[float, int]]:
    """Return D(t) as steps (time, nodes), each valid until the next; the last one has 0 nodes."""
    names = sorted({name for task in tasks for name in task.requests.names})
    rooms = [room_amount(shape, name) for name in names]
    changes: list[tuple[float, int, tuple[int, ...]]] = []
    for task in tasks:
        amounts = tuple(task.requests.get(name) for name in names)
        changes.append((task.start, 1, amounts))
        changes.append((task.end, -1, amounts))
    changes.sort(key=lambda change: change[0])
    steps: list[tuple[float, int]] = []
    used = [0] * len(names)
    i = 0
    while i < len(changes):
        at = changes[i][0]
        while i < len(changes) and changes[i][0] <= at + _EPSILON:
            _, sign, amounts = changes[i]
            used = [value + sign * amount for value, amount in zip(used, amounts, strict=True)]
            i += 1
        nodes = max((-(-value // room) if room else 0 for value, room in zip(used, rooms, strict=True)), default=0)
        if not steps or steps[-1][1] != nodes:
            steps.append((at, nodes))
    return steps


def opt_0(steps: Sequence[tuple[float, int]], boot_seconds: float) -> float:
    """Return the node-seconds of the cheapest plan without waiting for a need given as steps that end at 0 nodes."""
    total = 0.0
    levels: list[float | None] = []
    """Of each level: since when it is not needed; None while it is."""
    have, since = 0, 0.0
    for at, nodes in steps:
        total += have * (at - since)
        while have < nodes:
            have += 1
            if len(levels) < have:
                levels.append(None)
                total += boot_seconds
            else:
                gap_since = levels[have - 1]
                total += min(at - gap_since, boot_seconds) if gap_since is not None else 0.0
                levels[have - 1] = None
        while have > nodes:
            have -= 1
            levels[have] = at
        since = at
    return total


def lower_bound_1(tasks: Iterable[IdealTask], shape: Resources) -> float:
    """Return LB1: the node-seconds that the tasks alone fill, however long they may wait."""
    return sum((task.end - task.start) * share_of_node(task.requests, shape) for task in tasks)
