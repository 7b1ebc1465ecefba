from __future__ import annotations

from dataclasses import replace

import pytest
from planning_worlds import (
    ELASTIC,
    LEAD,
    NOW,
    POD,
    SETTINGS,
    active,
    coming,
    dag,
    node,
    nodes_action,
    slots_action,
    task,
    with_pool,
    world,
)

from airflow_elastic.model.demand import TaskState
from airflow_elastic.model.plan import SetSlots
from airflow_elastic.model.reasons import ReasonCode
from airflow_elastic.model.resources import Resources
from airflow_elastic.model.settings import Mode, Settings
from airflow_elastic.model.snapshot import PlannerMemory, Snapshot
from airflow_elastic.planning.planner import plan

ONE = dag("one", task("a"))


def refused(made, code: ReasonCode) -> dict[str, str]:
    return {each.about: each.reason.sentence for each in made.refusals if each.reason.code is code}


@pytest.mark.parametrize(
    ("ages", "code"),
    [
        ({"cluster_age_seconds": 60.1}, ReasonCode.FROZEN_CLUSTER),
        ({"airflow_age_seconds": 61.0}, ReasonCode.FROZEN_AIRFLOW),
        ({"airflow_age_seconds": float("inf")}, ReasonCode.FROZEN_AIRFLOW),
        ({"cluster_age_seconds": float("nan")}, ReasonCode.FROZEN_CLUSTER),
    ],
)
def test_an_old_view_freezes_everything(ages, code):
    memory = PlannerMemory(idle_since=(("n1", 5.0),))
    planned = plan(world(runs=[coming(ONE, 600)])).reservations
    snapshot = world(runs=[coming(ONE, 0)], nodes=[node("n1")], desired=4, memory=memory, reservations=planned, **ages)
    made = plan(snapshot)
    assert made.frozen is not None
    assert made.frozen.code is code
    assert (made.actions, made.memory, made.reservations) == ((), memory, planned)


def test_a_view_at_the_limit_is_still_good():
    assert plan(world(runs=[coming(ONE, 0)], cluster_age_seconds=60.0, airflow_age_seconds=60.0)).frozen is None


def test_observe_does_nothing_and_says_all():
    snapshot = world(runs=[coming(ONE, 5)], nodes=[node("f1", "fixed")], settings=replace(SETTINGS, mode=Mode.OBSERVE))
    made = plan(snapshot)
    assert made.actions == ()
    said = refused(made, ReasonCode.OBSERVE_ONLY)
    assert said["elastic"].startswith("mode observe: recommended, not done: elastic from 0 to 1 node(s): one run")
    assert said["core"].startswith("mode observe: recommended, not done: core from 0 to 4 slot(s)")
    assert made.memory.last_scale_out_at == ()


def test_sync_writes_slots_and_only_recommends_nodes():
    made = plan(world(runs=[coming(ONE, 5)], nodes=[node("f1", "fixed")], settings=replace(SETTINGS, mode=Mode.SYNC)))
    assert [type(each) for each in made.actions] == [SetSlots]
    assert slots_action(made, "core").slots == 4
    assert set(refused(made, ReasonCode.OBSERVE_ONLY)) == {"elastic"}


def test_a_task_wider_than_every_node_is_refused_once_and_orders_nothing():
    wide = dag("wide", task("big", requests=Resources.of(cpu=5000)), task("after", ["big"]))
    runs = [coming(wide, 0), coming(wide, 30), active(wide, {"big": TaskState.SCHEDULED})]
    made = plan(world(runs=runs))
    assert refused(made, ReasonCode.IMPOSSIBLE_TASK) == {
        "wide.big": "wide.big asks for cpu 5, more than any node of elastic offers (cpu 4, memory 8Gi, pods 20); "
        "it can never run: lower its requests or give its class a larger node pool"
    }
    only_big = replace(wide, tasks=wide.tasks[:1])
    assert nodes_action(plan(world(runs=[coming(only_big, 0)]))) is None


def test_a_pool_that_may_have_no_node_makes_its_tasks_impossible():
    none = with_pool(SETTINGS, replace(ELASTIC, max_nodes=0))
    assert refused(plan(world(runs=[coming(ONE, 0)], settings=none)), ReasonCode.IMPOSSIBLE_TASK)


def test_a_resource_that_no_pool_names_is_impossible_but_disk_need_not_be_named():
    gpu = dag("gpu", task("a", requests=Resources.of({"nvidia.com/gpu": 1})))
    disk = dag("disk", task("a", requests=Resources.of({"ephemeral-storage": 10**10})))
    made = plan(world(runs=[coming(gpu, 0), coming(disk, 0)]))
    assert set(refused(made, ReasonCode.IMPOSSIBLE_TASK)) == {"gpu.a"}
    assert nodes_action(made).nodes == 1


def test_a_larger_node_that_stands_makes_it_possible():
    wide = dag("wide", task("big", requests=Resources.of(cpu=5000)))
    large = replace(node("n1"), allocatable=Resources.of(cpu=16000, memory=2**40, pods=20))
    made = plan(world(runs=[coming(wide, 0)], nodes=[large], desired=1))
    assert not refused(made, ReasonCode.IMPOSSIBLE_TASK)
    assert nodes_action(made) is None


def test_a_task_bound_to_an_unknown_pool_is_impossible():
    lost = dag("lost", task("a", node_pools=("nowhere",)))
    said = refused(plan(world(runs=[coming(lost, 0)])), ReasonCode.IMPOSSIBLE_TASK)
    assert "any node of nowhere" in said["lost.a"]


def test_more_slots_than_a_node_holds_are_said():
    many = dag("many", task("a", pool_slots=5))
    said = refused(plan(world(runs=[coming(many, 0)])), ReasonCode.IMPOSSIBLE_SLOTS)
    assert said == {"many.a": "many.a needs 5 slots of burst, but a node holds 4 at most"}


def test_an_unknown_class_is_said_and_orders_nothing():
    odd = dag("odd", task("a", capacity_class="brust"))
    made = plan(world(runs=[coming(odd, 0)]))
    assert refused(made, ReasonCode.UNKNOWN_CLASS) == {
        "odd.a": "odd.a names the capacity class 'brust', which the capacity file does not have (core, burst)"
    }
    assert nodes_action(made) is None


def test_a_task_that_says_nothing_counts_with_the_default_class_and_requests():
    silent = dag("silent", *[task(f"t{i}", capacity_class="", requests=Resources()) for i in range(5)])
    assert nodes_action(plan(world(runs=[coming(silent, 0)]))).nodes == 2


def test_an_empty_installation_plans_nothing():
    assert plan(Snapshot(NOW, Settings(mode=Mode.MANAGE))).actions == ()
    made = plan(world(runs=[coming(ONE, 0)], settings=Settings(mode=Mode.MANAGE)))
    assert made.actions == ()
    assert refused(made, ReasonCode.UNKNOWN_CLASS)


def test_the_horizon_bounds_the_forecasts_and_a_run_s_peak_is_shown():
    fan = dag("fan", task("a"), *[task(f"b{i}", ["a"]) for i in range(9)])
    made = plan(world(runs=[coming(fan, 600), coming(fan, 7 * 3600)]))
    assert [(each.nodes, each.ask_at) for each in made.runs] == [(3, NOW + 600 - LEAD)]


def test_the_forecast_steps_through_the_run():
    steps = next(
        each for each in plan(world(runs=[coming(dag("d", task("a", seconds=20)), 30)])).node_pools
        if each.node_pool == "elastic"
    )  # fmt: skip
    assert steps.steps == ((NOW, 0), (NOW + 30, 1), (NOW + 50, 0))
    assert steps.target_nodes == 1


def test_the_same_snapshot_gives_the_same_plan():
    fan = dag("fan", task("a", q10=20, q90=300), *[task(f"b{i}", ["a"], requests=POD) for i in range(9)])
    snapshot = world(runs=[coming(fan, i) for i in range(0, 100, 7)], nodes=[node("n2"), node("n1")], desired=2)
    assert plan(snapshot) == plan(snapshot)
