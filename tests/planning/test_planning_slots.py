from __future__ import annotations

from dataclasses import replace

from planning_worlds import (
    GIB,
    NOW,
    SETTINGS,
    SHAPE,
    SLOT,
    active,
    booting,
    coming,
    dag,
    node,
    nodes_action,
    placeholder,
    pod,
    slots_action,
    task,
    world,
)

from airflow_elastic.model.capacity_class import CapacityClass
from airflow_elastic.model.demand import TaskInstance, TaskState
from airflow_elastic.model.plan import SetNodes, SetSlots
from airflow_elastic.model.reasons import ReasonCode
from airflow_elastic.model.resources import Resources
from airflow_elastic.model.settings import Mode
from airflow_elastic.model.snapshot import AirflowPool, PodPhase
from airflow_elastic.planning.planner import plan

ONE = dag("one", task("a"))
SOON = [coming(ONE, 20)]
"""Keeps a node, so that a test sees slots alone."""


def slots(made, pool: str = "burst") -> int | None:
    action = slots_action(made, pool)
    return action.slots if action else None


def test_slots_are_what_fits_over_all_resources():
    assert slots(plan(world(runs=SOON, nodes=[node("n1")], desired=1))) == 4
    foreign = node("n1", foreign=Resources.of(cpu=100, memory=7 * GIB))
    assert slots(plan(world(runs=SOON, nodes=[foreign], desired=1))) == 1
    few_pods = replace(
        node("n1"), allocatable=Resources.of(cpu=4000, memory=8 * GIB, pods=5), foreign=Resources.of(pods=3)
    )
    assert slots(plan(world(runs=SOON, nodes=[few_pods], desired=1))) == 2


def test_only_usable_nodes_count():
    others = [
        booting("b"),
        node("c", usable=False, unusable_because="it is cordoned"),
        node("r", usable=False, is_releasing=True),
        node("elsewhere", "online"),
    ]
    assert slots(plan(world(runs=SOON, nodes=[node("n1"), *others], desired=3))) == 4


def test_the_class_s_own_pods_are_part_of_its_slots_and_placeholders_count_as_free():
    run = active(ONE, {"a": TaskState.DEFERRED})
    pods = [pod("p", "n1", ("one", "run", "a")), placeholder("elastic", 0, "n1")]
    snapshot = world(runs=[run], nodes=[node("n1")], pods=pods, desired=1, pools=[AirflowPool("burst", 0, deferred=1)])
    assert slots(plan(snapshot)) == 4


def test_pods_of_another_class_take_room():
    other = [pod("p", "n1", capacity_class="core"), pod("q", "n1", capacity_class="gone")]
    assert slots(plan(world(runs=SOON, nodes=[node("n1")], pods=other, desired=1))) == 2


def test_nothing_is_written_when_the_pool_is_right():
    right = [AirflowPool("burst", 4), AirflowPool("core", 0)]
    assert plan(world(runs=SOON, nodes=[node("n1")], desired=1, pools=right)).actions == ()


def test_an_unlimited_pool_is_brought_down():
    action = slots_action(plan(world(runs=SOON, nodes=[node("n1")], desired=1, pools=[AirflowPool("burst", -1)])))
    assert (action.slots, action.was, action.is_down) == (4, -1, True)


def test_a_pool_that_does_not_exist_is_asked_for():
    made = plan(world(pools=[]))
    assert {(each.airflow_pool, each.slots, each.was) for each in made.actions} == {("core", 0, 0), ("burst", 0, 0)}


def test_a_node_loss_lowers_the_slots():
    action = slots_action(plan(world(pools=[AirflowPool("burst", 4), AirflowPool("core", 0)])))
    assert (action.slots, action.is_down) == (0, True)


def test_slots_go_down_before_nodes_and_up_after():
    pools = [AirflowPool("burst", 8), AirflowPool("core", 0)]
    made = plan(world(nodes=[node("n1"), node("n2"), node("f1", "fixed")], desired=2, pools=pools))
    kinds = [(type(each), each.airflow_pool if isinstance(each, SetSlots) else each.node_pool) for each in made.actions]
    assert kinds == [(SetSlots, "burst"), (SetNodes, "elastic"), (SetSlots, "core")]
    down = made.actions[0]
    assert (down.slots, down.reason.code) == (0, ReasonCode.SLOTS_DOWN_BEFORE_NODES)
    assert "fit once 2 node(s) have gone" in down.reason.sentence
    assert dict(made.usable_slots) == {"core": 4, "burst": 8}  # what fits at this moment


def test_in_sync_mode_slots_follow_the_nodes_that_in_fact_stay():
    sync = replace(SETTINGS, mode=Mode.SYNC)
    pools = [AirflowPool("burst", 8), AirflowPool("core", 0)]
    made = plan(world(nodes=[node("n1"), node("n2")], desired=2, pools=pools, settings=sync))
    assert made.actions == ()


def test_pods_that_airflow_does_not_count_are_taken_off():
    wide = dag("wide", *[task(f"t{i}", pool_slots=2, requests=Resources.of(cpu=2000)) for i in range(3)])
    resumed = (TaskInstance("t1", state=TaskState.SCHEDULED, resumes=True),)
    run = active(wide, {"t0": TaskState.DEFERRED, "t1": resumed, "t2": TaskState.SUCCESS})
    two = Resources.of(cpu=2000, pods=1)
    counted = pod("p0", "n1", ("wide", "run", "t0"), requests=two)
    alive_but_resumed = pod("p1", "n1", ("wide", "run", "t1"), requests=two)
    orphan = pod("p2", "n2", ("wide", "run", "t2"), requests=two)
    unknown = pod("p3", "n2")
    deferred = [AirflowPool("burst", 0, deferred=2), AirflowPool("core", 0)]

    later = coming(dag("later", *[task(f"t{i}") for i in range(8)]), 20)

    def fits(*pods):
        return slots(
            plan(world(runs=[run, later], nodes=[node("n1"), node("n2")], pods=pods, desired=2, pools=deferred))
        )

    assert fits(counted) == 8
    assert fits(counted, alive_but_resumed) == 6
    assert fits(counted, alive_but_resumed, orphan) == 4
    assert fits(counted, alive_but_resumed, orphan, unknown) == 3


def test_a_pool_that_does_not_count_deferred_tasks_has_their_pods_taken_off():
    run = active(ONE, {"a": TaskState.DEFERRED})
    pods = [pod("p", "n1", ("one", "run", "a"))]
    pool = [AirflowPool("burst", 0, deferred=1, include_deferred=False)]
    assert slots(plan(world(runs=[run], nodes=[node("n1")], pods=pods, desired=1, pools=pool))) == 3


def test_a_finished_pod_s_task_always_finds_a_slot():
    wide = dag("wide", task("t0"), task("t1"))
    ended = (TaskInstance("t0", state=TaskState.SCHEDULED, resumes=True),)
    run = active(wide, {"t0": ended, "t1": TaskState.DEFERRED})
    pools = [AirflowPool("burst", 0, deferred=1, scheduled=1), AirflowPool("core", 0)]
    done = pod("p", "n1", ("wide", "run", "t0"), phase=PodPhase.SUCCEEDED)
    action = slots_action(plan(world(runs=[run], pods=[done], pools=pools)))
    assert (action.slots, action.reason.code) == (2, ReasonCode.SLOTS_FOR_FINISHED)


def test_zero_nodes_mean_zero_slots_and_demand_still_shows():
    run = active(ONE, {"a": TaskState.SCHEDULED})
    made = plan(world(runs=[run], pools=[AirflowPool("burst", 0, scheduled=1), AirflowPool("core", 0)]))
    assert slots(made) is None
    assert nodes_action(made).nodes == 1


SHARED = replace(
    SETTINGS,
    classes=(
        CapacityClass("core", ("fixed",), "core", SLOT),
        CapacityClass("burst", ("fixed", "elastic"), "burst", SLOT),
    ),
)


def shared(*, core: AirflowPool, pods=(), nodes=None) -> dict[str, int]:
    standing = nodes or [node("f1", "fixed")]
    made = plan(world(nodes=standing, settings=SHARED, pods=pods, pools=[core, AirflowPool("burst", 0)]))
    return dict(made.usable_slots)


def test_on_a_shared_pool_the_first_class_gets_its_demand_and_the_last_the_rest():
    assert shared(core=AirflowPool("core", 0)) == {"core": 0, "burst": 4}
    assert shared(core=AirflowPool("core", 0, scheduled=3)) == {"core": 3, "burst": 1}
    assert shared(core=AirflowPool("core", 0, scheduled=30)) == {"core": 4, "burst": 0}
    running = [pod("p", "f1", capacity_class="core")]
    assert shared(core=AirflowPool("core", 0, deferred=1, scheduled=1), pods=running) == {"core": 2, "burst": 2}


def test_on_a_shared_pool_burst_pods_are_not_core_s_room():
    borrowed = [pod(f"p{i}", "f1") for i in range(3)]
    assert shared(core=AirflowPool("core", 0, scheduled=4), pods=borrowed) == {"core": 1, "burst": 3}


def test_classes_with_one_airflow_pool_add_up():
    both = replace(
        SETTINGS,
        classes=(
            CapacityClass("core", ("fixed",), "all", SLOT),
            CapacityClass("burst", ("elastic",), "all", Resources.of(cpu=2000)),
        ),
    )
    made = plan(world(runs=SOON, nodes=[node("f1", "fixed"), node("n1")], desired=1, settings=both, pools=[]))
    assert dict(made.usable_slots) == {"all": 6}


def test_slots_that_no_single_node_holds_together_are_not_capacity():
    half = replace(SETTINGS, classes=(replace(SETTINGS.classes[1], slot_shape=Resources.of(cpu=3000)),))
    made = plan(world(runs=SOON, nodes=[node("n1"), node("n2")], desired=2, settings=half, pools=[]))
    assert dict(made.usable_slots) == {"burst": 2}


def test_a_gpu_slot_needs_a_gpu_that_is_there():
    gpu = replace(SETTINGS, classes=(replace(SETTINGS.classes[1], slot_shape=Resources.of({"nvidia.com/gpu": 1})),))
    with_gpu = replace(node("n2"), allocatable=SHAPE + Resources.of({"nvidia.com/gpu": 2}))
    made = plan(world(nodes=[node("n1"), with_gpu], desired=2, settings=gpu, pools=[]))
    assert dict(made.usable_slots) == {"burst": 2}
    assert made.memory.idle_since == (("n1", NOW), ("n2", NOW))
