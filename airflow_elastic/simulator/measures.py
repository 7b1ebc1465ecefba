"""What a policy is judged by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from airflow_elastic.simulator.optimum import Ideal, share_of_node
from airflow_elastic.simulator.workload import TaskTemplate
from airflow_elastic.simulator.world import World

__all__ = ["Bounds", "Row", "flips_of", "measure", "quantile"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the workload would need at best, in node-seconds over all pools."""

    opt_0: float
    lb_1: float
    ideal: Ideal


@dataclass(frozen=True, slots=True)
class Row:
    """One policy's figures. Waits are for capacity only: Airflow's own start latency does not count."""

    policy: str
    workload: str
    boot_seconds: float
    seed: int
    scenario: str
    runs: int
    tasks: int
    node_hours: float
    """As billed: from the launch request to the end of the machine."""
    x_opt0: float
    cost: float
    cold_share: float
    """Share of tasks that waited more than 10 s for capacity."""
    wait_mean_seconds: float
    wait_p95_seconds: float
    wait_max_seconds: float
    first_task_wait_p95_seconds: float
    """Over the tasks without upstream of scheduled runs."""
    first_task_cold_share: float
    makespan_ratio: float
    """Mean over runs: how long it took to how long it would take without any waiting."""
    utilisation: float
    """LB1 / node-seconds."""
    node_starts: int
    flips: int
    peak_nodes: int
    preempted_node_seconds: float
    opt0_node_hours: float
    lb1_node_hours: float

    def as_dict(self) -> dict[str, object]:
        """Return it as plain data for JSON, rounded."""
        return {key: round(value, 5) if isinstance(value, float) else value for key, value in asdict(self).items()}


def quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile as the smallest value that this share of the values does not exceed; 0 without values."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[min(max(-(-int(len(ordered) * share * 1_000_000) // 1_000_000) - 1, 0), len(ordered) - 1)]


def flips_of(counts: Sequence[tuple[float, int]]) -> int:
    """Return how often the number of machines turned from growing to shrinking or back."""
    flips, direction, last = 0, 0, 0
    for _, count in counts:
        if count == last:
            continue
        turned = 1 if count > last else -1
        flips += direction not in (0, turned)
        direction, last = turned, count
    return flips


def measure(world: World, policy: str, bounds: Bounds, boot_seconds: float, scenario: str) -> Row:
    """Return the figures of a world that a policy has run."""
    conditions = world.conditions
    finished = sorted(world.airflow.finished, key=lambda run: run.number)
    waits = [task.wait_seconds or 0.0 for run in finished for task in run.tasks]
    first = [
        task.wait_seconds or 0.0
        for run in finished
        if run.planned.is_scheduled
        for task, template in zip(run.tasks, run.planned.dag.tasks, strict=True)
        if not template.upstream
    ]
    stretches = []
    for run in finished:
        best = bounds.ideal.run_ends[run.number] - run.planned.starts_at
        if best > 0 and run.ended_at is not None:
            stretches.append((run.ended_at - run.planned.starts_at) / best)
    pools = world.cluster.pools.values()
    bills = {pool.name: world.cluster.bill(pool) for pool in pools}
    total = sum(bills.values())
    prices = {pool.name: pool.price_per_node_hour for pool in world.settings.node_pools}
    cold = conditions.cold_seconds
    lost = sum(
        task.lost_seconds * _share(world, task.run.planned.dag.tasks[task.index])
        for run in finished
        for task in run.tasks
        if task.lost_seconds
    )
    return Row(
        policy=policy,
        workload=world.workload.name,
        boot_seconds=boot_seconds,
        seed=conditions.seed,
        scenario=scenario,
        runs=len(finished),
        tasks=len(waits),
        node_hours=total / 3600,
        x_opt0=total / bounds.opt_0 if bounds.opt_0 else 0.0,
        cost=sum(seconds / 3600 * prices[name] for name, seconds in bills.items()),
        cold_share=sum(wait > cold for wait in waits) / max(len(waits), 1),
        wait_mean_seconds=sum(waits) / max(len(waits), 1),
        wait_p95_seconds=quantile(waits, 0.95),
        wait_max_seconds=max(waits, default=0.0),
        first_task_wait_p95_seconds=quantile(first, 0.95),
        first_task_cold_share=sum(wait > cold for wait in first) / max(len(first), 1),
        makespan_ratio=sum(stretches) / max(len(stretches), 1),
        utilisation=bounds.lb_1 / total if total else 0.0,
        node_starts=sum(pool.starts for pool in pools),
        flips=sum(flips_of(pool.counts) for pool in pools),
        peak_nodes=sum(max((count for _, count in pool.counts), default=0) for pool in pools),
        preempted_node_seconds=lost,
        opt0_node_hours=bounds.opt_0 / 3600,
        lb1_node_hours=bounds.lb_1 / 3600,
    )


def _share(world: World, template: TaskTemplate) -> float:
    each = world.class_of(template.capacity_class)
    pool = world.settings.node_pool(each.node_pools[0]) if each and each.node_pools else None
    return share_of_node(template.requests, pool.shape) if pool else 0.0
