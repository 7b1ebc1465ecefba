"""All policies over the same workload, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from airflow_elastic.model.settings import Settings
from airflow_elastic.simulator.baselines import ClusterAutoscaler, FixedAtPeak, Reactive
from airflow_elastic.simulator.elastic import Elastic
from airflow_elastic.simulator.forecasters import CronWindows, HourlyForecast
from airflow_elastic.simulator.measures import Bounds, Row, measure
from airflow_elastic.simulator.optimum import IdealTask, ideal_course, lower_bound_1, nodes_over_time, opt_0
from airflow_elastic.simulator.scenario import CLOUD_SCENARIOS, FORECAST_SCENARIOS, scenario_by_name
from airflow_elastic.simulator.workload import Workload
from airflow_elastic.simulator.world import Conditions, Policy, World, truth_of

__all__ = ["ELASTIC", "POLICIES", "Simulated", "bounds_of", "needed", "policies", "simulate"]

ELASTIC = "elastic"
PERFECT = "elastic, perfect forecast"
FIXED = "fixed at peak"
KPO = "kpo + cluster-autoscaler"
KARPENTER = "karpenter"
_BASELINES: dict[str, Callable[[], Policy]] = {
    KPO: ClusterAutoscaler,
    KARPENTER: lambda: Reactive(KARPENTER, empty_seconds=30.0),
    "ski-rental timer": lambda: Reactive("ski-rental timer"),
    "keda-style cron window": CronWindows,
    "aws-predictive hourly mean": lambda: HourlyForecast("aws-predictive hourly mean", of="mean"),
    "aws-predictive hourly max": lambda: HourlyForecast("aws-predictive hourly max", of="max"),
}
POLICIES = (FIXED, *_BASELINES, ELASTIC, PERFECT)


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


def needed(workload: Workload, settings: Settings, conditions: Conditions) -> dict[str, list[tuple[float, int]]]:
    """Return D(t) of each pool: the nodes that the ideal course needs (see ``optimum``)."""
    world = World(workload, settings, conditions, gates=False)
    ideal = ideal_course(workload.test, conditions.start_seconds, conditions.finish_seconds)
    pools = world.cluster.pools
    return {
        name: nodes_over_time(tasks, pools[name].pool.shape) for name, tasks in _by_pool(ideal.tasks, world).items()
    }


def bounds_of(workload: Workload, settings: Settings, conditions: Conditions) -> Bounds:
    """Return what the workload would need at best."""
    world = World(workload, settings, conditions, gates=False)
    ideal = ideal_course(workload.test, conditions.start_seconds, conditions.finish_seconds)
    best, least = 0.0, 0.0
    for name, tasks in _by_pool(ideal.tasks, world).items():
        pool = world.cluster.pools[name]
        best += opt_0(nodes_over_time(tasks, pool.pool.shape), pool.truth.boot_seconds)
        least += lower_bound_1(tasks, pool.pool.shape)
    return Bounds(best, least, ideal)


def policies(names: Sequence[str] = (), *, scenarios: bool = False) -> list[tuple[str, str]]:
    """Return (policy, scenario) in the order of the table; no names: all.

    Raises:
        ValueError: no such policy.
    """
    unknown = [name for name in names if name not in POLICIES]
    if unknown:
        raise ValueError(f"no policy {', '.join(unknown)}; there are {', '.join(POLICIES)}")
    chosen = [(name, "") for name in POLICIES if not names or name in names]
    if scenarios:
        chosen += [(ELASTIC, each.name) for each in FORECAST_SCENARIOS]
        chosen += [(name, each.name) for each in CLOUD_SCENARIOS for name in (KPO, KARPENTER, ELASTIC)]
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
        ValueError: no such policy or scenario.
    """
    bounds = bounds_of(workload, settings, conditions)
    pools = [pool.name for pool in settings.node_pools]
    truths = {name: conditions.truths.get(name, truth_of(settings, name)) for name in pools}
    boot_seconds = truths[pools[0]].boot_seconds if pools else 0.0
    begin = workload.starts_at - conditions.lead_in_seconds
    for name, scenario_name in chosen:
        scenario = scenario_by_name(scenario_name)
        changed = {each: scenario.truth(truth, begin, workload.ends_at) for each, truth in truths.items()}
        if name == FIXED:
            steps = needed(workload, settings, conditions)
            policy: Policy = FixedAtPeak({each: max(nodes for _, nodes in some) for each, some in steps.items()})
        elif name in _BASELINES:
            policy = _BASELINES[name]()
        elif name in POLICIES:
            perfect = name == PERFECT
            policy = Elastic(name, tick_seconds=tick_seconds, distortion=scenario.distortion, perfect=perfect)
        else:
            raise ValueError(f"no policy {name!r}; there are {', '.join(POLICIES)}")
        here = replace(conditions, truths=changed)
        world = World(workload, settings, here, gates=isinstance(policy, Elastic))
        label = f"{name}, {scenario_name}" if scenario_name else name
        world.run(policy, _told(progress, label))
        yield Simulated(measure(world, name, bounds, boot_seconds, scenario_name), world, policy)


def _told(progress: Callable[[str, float], None] | None, label: str) -> Callable[[float], None] | None:
    if progress is None:
        return None
    tell = progress
    return lambda share: tell(label, share)
