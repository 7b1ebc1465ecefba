"""Policies that prepare by time of day from what the training days showed, above a reactive autoscaler.

Decisions:
- ``keda-style cron window``: for each DAG a window of its own from a boot time (95th percentile) before each scheduled
  start to the longest course that the training days showed, holding the DAG's largest need in them; windows of several
  DAGs add up. That is how cron triggers are written by hand.
- ``aws-predictive hourly mean / max``: for each hour of the day the mean (the largest) need of that hour in the
  training days, rounded up, is the least capacity during that hour and from a boot time before it. It never scales in
  on the forecast: only the autoscaler below it removes nodes.
- Below both works the cluster-autoscaler of ``baselines``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise

from airflow_elastic.simulator.baselines import ClusterAutoscaler
from airflow_elastic.simulator.cluster import SimPool
from airflow_elastic.simulator.optimum import ideal_course, nodes_over_time
from airflow_elastic.simulator.workload import DAY, DagTemplate, PlannedRun
from airflow_elastic.simulator.world import World

__all__ = ["CronWindows", "HourlyForecast"]

_HOUR = 3600.0


class _Prepared(ClusterAutoscaler, ABC):
    """An autoscaler with a minimum that is a step function of time."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._steps: dict[str, list[tuple[float, int]]] = {}
        self._position: dict[str, int] = {}

    def begin(self, world: World) -> None:
        """Work out the minimum over the measured days."""
        self.world = world
        for pool in world.cluster.pools.values():
            runs = [run for run in world.workload.training if self._uses(run.dag, pool)]
            steps = self.minimum(world, pool, runs)
            self._steps[pool.name] = steps
            self._position[pool.name] = 0
            for at, _ in steps:
                world.engine.at(at, self._look_at, at)
        super().begin(world)

    @abstractmethod
    def minimum(self, world: World, pool: SimPool, training: Sequence[PlannedRun]) -> list[tuple[float, int]]:
        """Return (from, least machines) over the measured days, by time."""

    def _uses(self, dag: DagTemplate, pool: SimPool) -> bool:
        each = self.world.class_of(dag.tasks[0].capacity_class) if dag.tasks else None
        return each is not None and bool(each.node_pools) and each.node_pools[0] == pool.name

    def least(self, pool: SimPool) -> int:
        """Return the forecast's minimum for now."""
        steps, i = self._steps[pool.name], self._position[pool.name]
        while i < len(steps) and steps[i][0] <= self.world.now:
            i += 1
        self._position[pool.name] = i
        return max(steps[i - 1][1] if i else 0, super().least(pool))


def _needs(world: World, pool: SimPool, runs: Sequence[PlannedRun]) -> list[tuple[float, int]]:
    conditions = world.conditions
    ideal = ideal_course(runs, conditions.start_seconds, conditions.finish_seconds)
    return nodes_over_time(ideal.tasks, pool.pool.shape)


class CronWindows(_Prepared):
    """One window with a fixed size around every scheduled run of a DAG."""

    def __init__(self, name: str = "keda-style cron window") -> None:
        super().__init__(name)

    def minimum(self, world: World, pool: SimPool, training: Sequence[PlannedRun]) -> list[tuple[float, int]]:
        """Add up the windows of all DAGs."""
        sizes: dict[str, tuple[int, float]] = {}
        for run in training:
            steps = _needs(world, pool, [run])
            peak = max((nodes for _, nodes in steps), default=0)
            length = steps[-1][0] - run.starts_at if steps else 0.0
            old = sizes.get(run.dag.dag_id, (0, 0.0))
            sizes[run.dag.dag_id] = (max(peak, old[0]), max(length, old[1]))
        changes: list[tuple[float, int]] = []
        for run in world.workload.test:
            if run.is_scheduled and run.dag.dag_id in sizes:
                peak, length = sizes[run.dag.dag_id]
                changes += [(run.starts_at - pool.truth.boot_seconds_p95, peak), (run.starts_at + length, -peak)]
        steps, total = [], 0
        for at, change in sorted(changes):
            total += change
            steps.append((at, total))
        return steps


class HourlyForecast(_Prepared):
    """The mean or the largest need of each hour of the day as the minimum in that hour."""

    def __init__(self, name: str, *, of: str) -> None:
        """Make the policy; ``of``: ``mean`` or ``max``."""
        super().__init__(name)
        self.of = of

    def minimum(self, world: World, pool: SimPool, training: Sequence[PlannedRun]) -> list[tuple[float, int]]:
        """Fold the training days into hours of the day."""
        work, most = [0.0] * 24, [0] * 24
        steps = _needs(world, pool, training)
        for (begin, nodes), (end, _) in pairwise(steps):
            at = begin
            while at < end:
                until = min((at // _HOUR + 1) * _HOUR, end)
                hour = int(at // _HOUR) % 24
                work[hour] += nodes * (until - at)
                most[hour] = max(most[hour], nodes if until > at else 0)
                at = until
        days = max(round((world.workload.starts_at - min((run.starts_at for run in training), default=0.0)) / DAY), 1)
        size = [math.ceil(total / (days * _HOUR)) for total in work] if self.of == "mean" else most
        first = world.workload.starts_at
        hours = int((world.workload.ends_at - first) // _HOUR) + 1
        lead = pool.truth.boot_seconds_p95
        by_hour = [(first + i * _HOUR, size[int((first // _HOUR + i) % 24)]) for i in range(hours)]
        result: list[tuple[float, int]] = []
        for i, (at, nodes) in enumerate(by_hour):
            before = by_hour[i - 1][1] if i else 0
            # More is asked for a boot time ahead; less counts from the hour on.
            result.append((at - lead if nodes > before else at, nodes))
        return result
