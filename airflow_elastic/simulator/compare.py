"""All policies over the same workload, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from airflow_elastic.model.settings import Settings
from airflow_elastic.simulator.baselines import ClusterAutoscaler, FixedAtPeak, Reactive
from airflow_elastic.simulator.distortion import DISTORTIONS
from airflow_elastic.simulator.elastic import Elastic
from airflow_elastic.simulator.forecasters import CronWindows, HourlyForecast
from airflow_elastic.simulator.measures import Bounds, Row, measure
from airflow_elastic.simulator.optimum import Ideal, IdealTask, ideal_course, lower_bound_1, nodes_over_time, opt_0
from airflow_elastic.simulator.workload import Workload
from airflow_elastic.simulator.world import Conditions, Policy, World, truth_of

__all__ = ["BASELINES", "ELASTIC", "PERFECT", "bounds_of", "policies", "simulate"]

ELASTIC = "elastic"
PERFECT = "elastic, perfect forecast"
FIXED = "fixed at peak"
BASELINES: dict[str, Callable[[], Policy]] = {
    "kpo + cluster-autoscaler": ClusterAutoscaler,
    "karpenter": lambda: Reactive("karpenter", empty_seconds=30.0),
    "ski-rental timer": lambda: Reactive("ski-rental timer"),
    "keda-style cron window": CronWindows,
    "aws-predictive hourly mean": lambda: HourlyForecast("aws-predictive hourly mean", of="mean"),
    "aws-predictive hourly max": lambda: HourlyForecast("aws-predictive hourly max", of="max"),
}


@dataclass(frozen=True, slots=True)
class Simulated:
    """One policy's figures and the world as it left it."""

    row: Row
    world: World
    policy: Policy


def _by_pool(tasks: Sequence[IdealTask], world: World) -> dict[str, list[IdealTask]]:
    """Sort the ideal course by the first pool of each task's class."""
    found: dict[str, list[IdealTask]] = {}
    for task in tasks:
        each = world.class_of(task.capacity_class)
        if each is not None and each.node_pools:
            found.setdefault(each.node_pools[0], []).append(task)
    return found


def bounds_of(workload: Workload, settings: Settings, conditions: Conditions) -> tuple[Bounds, dict[str, int]]:
    """Return the bounds, and each pool's ideal peak."""
    world = World(workload, settings, conditions, gates=False)
    ideal: Ideal = ideal_course(workload.test, conditions.start_seconds, conditions.finish_seconds)
    best, least, peaks = 0.0, 0.0, {}
    for name, tasks in _by_pool(ideal.tasks, world).items():
        pool = world.cluster.pools[name]
        steps = nodes_over_time(tasks, pool.pool.shape)
        best += opt_0(steps, pool.truth.boot_seconds)
        least += lower_bound_1(tasks, pool.pool.shape)
        peaks[name] = max((nodes for _, nodes in steps), default=0)
    return Bounds(best, least, ideal), peaks


def policies(names: Sequence[str] = (), *, scenarios: bool = False) -> list[tuple[str, str]]:
    """Return (policy, scenario) in the order of the table; no names: all."""
    known = [FIXED, *BASELINES, ELASTIC, PERFECT]
    chosen = [(name, "") for name in known if not names or name in names]
    if scenarios:
        chosen += [(ELASTIC, each.name) for each in DISTORTIONS]
    return chosen


def simulate(
    workload: Workload,
    settings: Settings,
    conditions: Conditions,
    chosen: Sequence[tuple[str, str]],
    *,
    tick_seconds: float = 1.0,
    progress: Callable[[str, float], None] | None = None,
) -> Iterator[Simulated]:
    """Run each (policy, scenario) and yield its figures.

    Raises:
        ValueError: no such policy.
    """
    bounds, peaks = bounds_of(workload, settings, conditions)
    boots = [conditions.truths.get(pool.name, truth_of(settings, pool.name)) for pool in settings.node_pools]
    boot_seconds = boots[0].boot_seconds if boots else 0.0
    for name, scenario in chosen:
        policy = _policy(name, scenario, peaks, tick_seconds)
        world = World(workload, settings, conditions, gates=isinstance(policy, Elastic))
        label = f"{name}, {scenario}" if scenario else name
        world.run(policy, (lambda share, label=label: progress(label, share)) if progress else None)  # type: ignore[misc]
        yield Simulated(measure(world, name, bounds, boot_seconds, scenario), world, policy)


def _policy(name: str, scenario: str, peaks: dict[str, int], tick_seconds: float) -> Policy:
    if name == FIXED:
        return FixedAtPeak(peaks)
    if name in BASELINES:
        return BASELINES[name]()
    if name in (ELASTIC, PERFECT):
        wrong = {each.name: each for each in DISTORTIONS}
        if scenario and scenario not in wrong:
            raise ValueError(f"no scenario {scenario!r}; there are {', '.join(wrong)}")
        perfect = name == PERFECT
        if scenario:
            return Elastic(name, tick_seconds=tick_seconds, distortion=wrong[scenario], perfect=perfect)
        return Elastic(name, tick_seconds=tick_seconds, perfect=perfect)
    raise ValueError(f"no policy {name!r}; there are {', '.join((FIXED, *BASELINES, ELASTIC, PERFECT))}")
