from __future__ import annotations

import pytest
from simulator_worlds import daily, fan_out, settings

from airflow_elastic.simulator.baselines import FixedAtPeak, Reactive
from airflow_elastic.simulator.cluster import PoolTruth
from airflow_elastic.simulator.compare import POLICIES, bounds_of, policies, simulate
from airflow_elastic.simulator.measures import flips_of, measure, quantile
from airflow_elastic.simulator.workload import DagTemplate, TaskTemplate
from airflow_elastic.simulator.world import Conditions, World


def run(policy: object, workload: object, conditions: Conditions | None = None, **more: object) -> World:
    world = World(workload, settings(**more), conditions or Conditions(), gates=False)  # type: ignore[arg-type]
    world.run(policy)  # type: ignore[arg-type]
    return world


def test_a_fixed_fleet_never_lets_a_task_wait_and_is_billed_to_the_end() -> None:
    workload = daily(fan_out(8, 300.0))
    world = run(FixedAtPeak({"burst": 2}), workload)
    bounds = bounds_of(workload, settings(), Conditions())
    row = measure(world, "fixed", bounds, 60.0, "")
    assert (row.tasks, row.cold_share, row.wait_max_seconds) == (20, 0.0, 0.0)
    assert row.makespan_ratio == pytest.approx(1.0)
    assert row.node_hours == pytest.approx(2 * 49.0)
    assert row.x_opt0 > 1.0


def test_a_reactive_policy_lets_every_first_task_wait_for_a_boot() -> None:
    workload = daily(fan_out(4, 300.0))
    conditions = Conditions(truths={"burst": PoolTruth(60.0, 60.0)})
    world = run(Reactive("karpenter", empty_seconds=30.0), workload, conditions)
    waits = [run.tasks[0].wait_seconds for run in world.airflow.finished]
    assert waits == [pytest.approx(61.0)] * 2
    # One machine a run: a boot, the second before the first task's end is seen, and 30 s empty at the end.
    assert world.cluster.pools["burst"].starts == 2
    assert not world.cluster.pools["burst"].nodes


def test_tasks_of_a_run_at_once_are_limited() -> None:
    workload = daily(fan_out(8, 300.0, max_active_tasks=4), days=1)
    world = run(FixedAtPeak({"burst": 5}), workload)
    starts = sorted(task.created_at for task in world.airflow.finished[0].tasks[1:9])
    assert starts[3] == starts[0]
    assert starts[4] - starts[0] == pytest.approx(303.0)
    # What the limit holds back does not wait for capacity.
    assert all(task.wait_seconds == 0.0 for task in world.airflow.finished[0].tasks)


def test_runs_at_once_are_limited() -> None:
    dag = DagTemplate("slow", (TaskTemplate("t", (), 1.5 * 86400.0),), max_active_runs=1)
    world = run(FixedAtPeak({"burst": 2}), daily(dag, days=2))
    first, second = world.airflow.finished
    assert second.started_at == first.ended_at


def test_pods_go_to_the_fullest_or_to_the_emptiest_node() -> None:
    workload = daily(fan_out(3, 300.0), days=1)
    used = {}
    for packing in (True, False):
        world = World(workload, settings(), Conditions(packing=packing), gates=False)
        seen: set[str] = set()
        world.on_pod_ended = lambda task, pod, seen=seen: seen.add(pod.name)
        world.run(FixedAtPeak({"burst": 3}))
        used[packing] = sum(node.idle_since is not None and node.idle_since != node.usable_at
                            for node in world.cluster.pools["burst"].nodes)  # fmt: skip
    assert used == {True: 1, False: 3}


def test_a_lost_machine_takes_its_pods_along_and_they_run_again() -> None:
    workload = daily(fan_out(8, 200.0))
    conditions = Conditions(truths={"burst": PoolTruth(60.0, 90.0, reclaim_mean_seconds=100.0)})
    world = run(Reactive("karpenter", empty_seconds=30.0), workload, conditions)
    tasks = [task for run in world.airflow.finished for task in run.tasks]
    assert len(tasks) == 20
    assert max(task.tries for task in tasks) > 1
    assert sum(task.lost_seconds for task in tasks) > 0


def test_a_stock_out_delays_boots_and_bills_nothing_meanwhile() -> None:
    workload = daily(fan_out(4, 300.0), days=1)
    begin = workload.test[0].starts_at
    conditions = Conditions(truths={"burst": PoolTruth(60.0, 60.0, stock_outs=((begin - 10.0, begin + 500.0),))})
    world = run(Reactive("karpenter", empty_seconds=30.0), workload, conditions)
    assert world.airflow.finished[0].tasks[0].wait_seconds == pytest.approx(500.0 + 60.0 - 2.0)


def test_boots_are_the_same_for_every_policy() -> None:
    workload = daily(fan_out(4, 300.0), days=1)
    arrivals = []
    for policy in (FixedAtPeak({"burst": 1}), Reactive("timer")):
        world = run(policy, workload)
        node = world.cluster.arrivals[0]
        arrivals.append((node.usable_at or 0.0) - node.asked_at)
    assert arrivals[0] == pytest.approx(arrivals[1])


def test_every_policy_runs_the_whole_workload_and_the_same_again_gives_the_same() -> None:
    workload = daily(fan_out(6, 120.0), days=1)
    rows = [
        [each.row for each in simulate(workload, settings(), Conditions(), policies(), tick_seconds=5.0)]
        for _ in range(2)
    ]
    assert [row.policy for row in rows[0]] == list(POLICIES)
    assert all(row.tasks == 8 and row.runs == 1 and row.node_hours > 0 for row in rows[0])
    assert rows[0] == rows[1]


def test_unknown_policies_are_named() -> None:
    with pytest.raises(ValueError, match="no policy nobody; there are fixed at peak"):
        policies(["nobody"])


@pytest.mark.parametrize(
    ("counts", "flips"),
    [([], 0), ([1, 2, 3], 0), ([1, 2, 1], 1), ([2, 1, 1, 3, 0], 3), ([4, 4, 4], 0)],
)
def test_flips_count_changes_of_direction(counts: list[int], flips: int) -> None:
    assert flips_of([(float(i), count) for i, count in enumerate(counts)]) == flips


def test_quantiles_are_values_that_occurred() -> None:
    assert quantile([], 0.5) == 0.0
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.0
    assert quantile([float(i) for i in range(1, 101)], 0.95) == 95.0
