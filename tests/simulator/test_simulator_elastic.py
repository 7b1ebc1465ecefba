from __future__ import annotations

import pytest
from simulator_worlds import daily, fan_out, settings

from airflow_elastic.model.plan import Plan
from airflow_elastic.model.snapshot import Snapshot
from airflow_elastic.simulator.elastic import Elastic
from airflow_elastic.simulator.scenario import scenario_by_name
from airflow_elastic.simulator.workload import DagTemplate, PlannedRun, TaskTemplate, Workload
from airflow_elastic.simulator.world import Conditions, World


def run(workload: Workload, policy: Elastic | None = None, **more: float) -> World:
    world = World(workload, settings(**more), Conditions(), gates=True)  # type: ignore[arg-type]
    world.run(policy or Elastic(tick_seconds=2.0))
    return world


def test_the_planner_prepares_for_a_scheduled_run_and_gives_everything_back() -> None:
    world = run(daily(fan_out(8, 600.0), days=2))
    waits = [task.wait_seconds or 0.0 for run in world.airflow.finished for task in run.tasks]
    assert len(waits) == 20
    assert max(waits) < 10.0
    pool = world.cluster.pools["burst"]
    assert not pool.nodes
    assert not pool.coming
    # Two nodes for about 11 minutes and a boot, twice; not two for two days.
    assert world.cluster.bill(pool) < 2 * 2 * 1500.0


def test_an_unannounced_run_is_served_late() -> None:
    workload = daily(fan_out(8, 600.0), days=1)
    manual = [PlannedRun(each.dag, each.run_id, each.starts_at, each.seconds, False) for each in workload.test]
    workload = Workload("manual", workload.training, tuple(manual), workload.starts_at, workload.ends_at)
    world = run(workload)
    assert (world.airflow.finished[0].tasks[0].wait_seconds or 0.0) > 10.0


def test_the_planner_sees_what_airflow_shows_and_no_more() -> None:
    """A mapped task has no instances with an index before its upstream has ended."""
    tasks = [TaskTemplate("list", (), 60.0)]
    tasks += [TaskTemplate("work", (0,), 120.0, map_index=i) for i in range(4)]
    workload = daily(DagTemplate("mapped", tuple(tasks)), days=1)
    seen: list[Snapshot] = []

    def keep(snapshot: Snapshot, plan: Plan) -> None:
        seen.append(snapshot)

    run(workload, Elastic(tick_seconds=2.0, on_plan=keep))
    shown = [
        sorted(task.map_index for task in each.tasks if task.task_id == "work")
        for snapshot in seen
        for each in snapshot.runs
        if each.tasks
    ]
    assert shown[0] == [-1]
    assert [0, 1, 2, 3] in shown
    assert all(spec.mapped_width == 4 for each in seen[-1].runs for spec in each.shape.tasks if spec.is_mapped)


def test_slots_never_exceed_what_fits() -> None:
    workload = daily(fan_out(12, 200.0), days=1)
    over: list[int] = []

    def check(snapshot: Snapshot, plan: Plan) -> None:
        usable = 4 * sum(node.usable for node in snapshot.nodes)
        pool = snapshot.airflow_pools[0]
        over.append(pool.slots - max(usable, pool.occupied))

    run(workload, Elastic(tick_seconds=2.0, on_plan=check))
    assert max(over) <= 0


@pytest.mark.parametrize("name", ["forecast shifted 30 min", "forecast scaled × 3", "forecast random"])
def test_wrong_forecasts_still_serve_everything(name: str) -> None:
    policy = Elastic(tick_seconds=5.0, distortion=scenario_by_name(name).distortion)
    world = run(daily(fan_out(6, 300.0), days=1), policy)
    assert len(world.airflow.finished) == 1


def test_scenarios_are_known_by_name() -> None:
    with pytest.raises(ValueError, match="no scenario 'rain'"):
        scenario_by_name("rain")
