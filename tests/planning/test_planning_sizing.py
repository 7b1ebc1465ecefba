from __future__ import annotations

from dataclasses import replace

import pytest
from planning_worlds import (
    ELASTIC,
    GIB,
    LEAD,
    NOW,
    POD,
    SETTINGS,
    SLOT,
    active,
    after,
    booting,
    coming,
    dag,
    duration,
    node,
    nodes_action,
    placeholder,
    pod,
    task,
    with_pool,
    world,
)

from airflow_elastic.model.capacity_class import CapacityClass
from airflow_elastic.model.demand import RunAnnotation, RunPhase, TaskInstance, TaskState
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.reasons import ReasonCode
from airflow_elastic.model.resources import Resources
from airflow_elastic.model.snapshot import NodePoolState
from airflow_elastic.planning.planner import plan

ONE = dag("one", task("a"))
WIDE = dag("wide", *[task(f"t{i}") for i in range(9)])
BY_PLACEHOLDER = with_pool(SETTINGS, replace(ELASTIC, provider="placeholder"))
PLACEHOLDER_STATE = NodePoolState("elastic", None)


def codes(made) -> set[ReasonCode]:
    return {refusal.reason.code for refusal in made.refusals}


def test_a_coming_run_s_node_is_asked_for_exactly_its_lead_before():
    assert nodes_action(plan(world(runs=[coming(ONE, LEAD + 0.5)]))) is None
    action = nodes_action(plan(world(runs=[coming(ONE, LEAD)])))
    assert (action.nodes, action.was, action.warm_nodes) == (1, 0, 1)
    assert action.reason.code is ReasonCode.PREWARM
    assert "one run run_66 needs 1 node(s) of elastic at" in action.reason.sentence


def test_the_learned_boot_time_moves_the_moment():
    slow = (("elastic", duration(100, 90, 200)),)
    assert nodes_action(plan(world(runs=[coming(ONE, 206)], boot=slow))).nodes == 1
    assert nodes_action(plan(world(runs=[coming(ONE, 207)], boot=slow))) is None


def test_a_class_that_minds_waiting_less_asks_later():
    patient = replace(SETTINGS, classes=tuple(replace(each, wait_price_ratio=1.0) for each in SETTINGS.classes))
    assert nodes_action(plan(world(runs=[coming(ONE, LEAD)], settings=patient))) is None
    assert nodes_action(plan(world(runs=[coming(ONE, 36)], settings=patient))).nodes == 1


def test_a_run_whose_first_node_task_comes_later_asks_later():
    late = dag("late", task("wait", seconds=100, node=False), task("a", ["wait"]))
    assert nodes_action(plan(world(runs=[coming(late, LEAD - 99)]))) is None
    assert nodes_action(plan(world(runs=[coming(late, 0)]))) is None
    half = active(late, {"wait": (TaskInstance("wait", state=TaskState.RUNNING, started_at=NOW - 40),)})
    assert nodes_action(plan(world(runs=[half]))).reason.code is ReasonCode.MORE_FOR_RUN


def test_held_back_tasks_bring_nodes_from_zero():
    run = active(WIDE, {f"t{i}": TaskState.SCHEDULED for i in range(9)})
    action = nodes_action(plan(world(runs=[run])))
    assert (action.nodes, action.reason.code) == (3, ReasonCode.TASKS_WAIT)  # 4 pods of 1 cpu fit on a node of 4
    assert "9 task(s) are ready or pending and need 3 node(s)" in action.reason.sentence


def test_a_pod_without_a_known_run_that_waits_is_demand_too():
    assert nodes_action(plan(world(pods=[pod("p")]))).nodes == 1


def test_an_unbound_pod_whose_task_has_ended_is_none():
    run = active(ONE, {"a": TaskState.SUCCESS})
    assert nodes_action(plan(world(runs=[run], pods=[pod("p", owner=("one", "run", "a"))]))) is None


def test_booting_and_coming_nodes_count_as_had():
    run = active(WIDE, {f"t{i}": TaskState.SCHEDULED for i in range(9)})
    state = NodePoolState("elastic", 3, coming_nodes=1)
    assert nodes_action(plan(world(runs=[run], nodes=[booting("b1"), booting("b2")], state=state))) is None


def test_an_unusable_node_is_replaced_on_top_of_itself():
    run = active(ONE, {"a": TaskState.SCHEDULED})
    cordoned = node("n1", usable=False, unusable_because="it is cordoned")
    action = nodes_action(plan(world(runs=[run], nodes=[cordoned], desired=1)))
    assert (action.nodes, action.was) == (2, 1)


def test_an_unusable_node_that_the_mechanism_has_dropped_is_not_counted_on_top():
    run = active(ONE, {"a": TaskState.SCHEDULED})
    cordoned = node("n1", usable=False, unusable_because="it is cordoned")
    assert nodes_action(plan(world(runs=[run], nodes=[cordoned], desired=0))).nodes == 1


def test_a_lost_node_s_work_is_demand_again_and_its_place_is_free():
    only = with_pool(SETTINGS, replace(ELASTIC, max_nodes=1))
    run = active(ONE, {"a": TaskState.DEFERRED})
    lost = node("n1", usable=False, is_lost=True, unusable_because="it is not Ready")
    snapshot = world(runs=[run], nodes=[lost], pods=[pod("p", "n1", ("one", "run", "a"))], settings=only)
    assert nodes_action(plan(snapshot)).nodes == 1


def test_unusable_nodes_never_push_the_pool_over_its_maximum():
    run = active(WIDE, {f"t{i}": TaskState.SCHEDULED for i in range(9)})
    bad = [node(f"n{i}", usable=False) for i in range(5)]
    made = plan(world(runs=[run], nodes=bad, desired=5))
    assert nodes_action(made).nodes == 6
    assert ReasonCode.AT_MAXIMUM in codes(made)


def test_the_maximum_is_kept_and_said():
    tight = with_pool(SETTINGS, replace(ELASTIC, max_nodes=2))
    run = active(WIDE, {f"t{i}": TaskState.SCHEDULED for i in range(9)})
    made = plan(world(runs=[run], settings=tight))
    assert nodes_action(made).nodes == 2
    refusal = next(each for each in made.refusals if each.reason.code is ReasonCode.AT_MAXIMUM)
    assert "elastic may have 2 node(s) at most (max_nodes); 3 would be needed" in refusal.reason.sentence


def test_min_nodes_are_brought_without_demand():
    action = nodes_action(plan(world(settings=with_pool(SETTINGS, replace(ELASTIC, min_nodes=2)))))
    assert (action.nodes, action.reason.code) == (2, ReasonCode.KEEP_MINIMUM)


def test_bound_pods_stay_where_they_are_and_do_not_count_twice():
    pods = [pod(f"p{i}", f"n{i % 2}", ("wide", "run", f"t{i}")) for i in range(4)]
    states = {f"t{i}": TaskState.DEFERRED for i in range(4)} | {f"t{i}": TaskState.SUCCESS for i in range(4, 9)}
    snapshot = world(runs=[active(WIDE, states)], nodes=[node("n0"), node("n1")], pods=pods, desired=2)
    assert nodes_action(plan(snapshot)) is None


def test_packing_looks_at_every_resource_and_at_the_pod_limit():
    memory = dag("m", *[task(f"t{i}", requests=Resources.of(cpu=100, memory=5 * GIB)) for i in range(3)])
    run = active(memory, {f"t{i}": TaskState.SCHEDULED for i in range(3)})
    assert nodes_action(plan(world(runs=[run]))).nodes == 3
    tiny = dag("tiny", *[task(f"t{i}", requests=Resources.of(cpu=1)) for i in range(21)])
    run = active(tiny, {f"t{i}": TaskState.SCHEDULED for i in range(21)})
    assert nodes_action(plan(world(runs=[run]))).nodes == 2  # 20 pods a node


def test_first_fit_decreasing_fills_the_gaps_beside_large_pods():
    large = [task(f"l{i}", requests=Resources.of(cpu=3000)) for i in range(2)]
    small = [task(f"s{i}", requests=Resources.of(cpu=1000)) for i in range(2)]
    mixed = dag("mixed", *small, *large)
    run = active(mixed, {each.task_id: TaskState.QUEUED for each in mixed.tasks})
    assert nodes_action(plan(world(runs=[run]))).nodes == 2


def test_daemonsets_on_the_standing_nodes_are_expected_on_new_ones():
    daemons = Resources.of(cpu=1000, pods=3)
    busy = [node(f"n{i}", foreign=Resources.of(cpu=4000, pods=3)) for i in range(2)]
    run = active(WIDE, {f"t{i}": TaskState.SCHEDULED for i in range(9)})
    light = [replace(busy[0], foreign=daemons), replace(busy[1], foreign=daemons)]
    full = [pod(f"p{i}{j}", f"n{i}") for i in range(2) for j in range(3)]
    assert nodes_action(plan(world(runs=[run], nodes=light, pods=full, desired=2))).nodes == 5  # 3 pods on each new one


def test_a_chain_of_tasks_needs_one_node_though_its_times_are_uncertain():
    chain = dag("chain", *[task(f"t{i}", [f"t{i - 1}"] if i else [], 20, q10=5, q90=60) for i in range(8)])
    chain = replace(chain, tasks=tuple(replace(each, requests=Resources.of(cpu=4000)) for each in chain.tasks))
    assert nodes_action(plan(world(runs=[coming(chain, 10)]))).nodes == 1


def test_a_fan_out_is_asked_for_before_its_upstream_may_have_ended_and_not_earlier():
    fan = dag("fan", task("a", seconds=600), *[task(f"b{i}", ["a"]) for i in range(8)])
    for started, nodes in ((NOW, None), (NOW - 500, None), (NOW - 535, 2)):
        run = active(fan, {"a": TaskState.DEFERRED})
        begun = pod("p", "n1", ("fan", "run", "a"), started=started)
        action = nodes_action(plan(world(runs=[run], nodes=[node("n1")], pods=[begun], desired=1)))
        assert (action.nodes if action else None) == nodes


def test_backfill_counts_only_as_many_runs_as_may_be_active():
    one_at_a_time = replace(ONE, max_active_runs=2)
    whole = replace(one_at_a_time, tasks=(replace(ONE.tasks[0], requests=Resources.of(cpu=4000)),))
    runs = [replace(coming(whole, -i, f"day{i:02}"), phase=RunPhase.QUEUED, is_backfill=True) for i in range(30)]
    made = plan(world(runs=runs))
    assert nodes_action(made).nodes == 2
    starts = sorted({round(each.needed_at - NOW) for each in made.runs})
    assert starts[:3] == [0, 60, 120]


def test_runs_of_a_paused_dag_bring_nothing_but_what_runs_stays():
    paused = replace(WIDE, is_paused=True)
    assert nodes_action(plan(world(runs=[coming(paused, 0)]))) is None
    run = active(paused, {"t0": TaskState.DEFERRED, "t1": TaskState.SCHEDULED})
    begun = pod("p", "n1", ("wide", "run", "t0"))
    assert nodes_action(plan(world(runs=[run], nodes=[node("n1")], pods=[begun], desired=1))) is None


def test_an_annotation_holds_nodes_from_the_start_of_the_run():
    asks = RunAnnotation(nodes=3)
    assert nodes_action(plan(world(runs=[coming(ONE, LEAD + 1, annotation=asks)]))) is None
    assert nodes_action(plan(world(runs=[coming(ONE, LEAD, annotation=asks)]))).nodes == 3
    run = active(ONE, {"a": TaskState.DEFERRED}, annotation=asks)
    standing = [node(f"n{i}") for i in range(3)]
    begun = [pod("p", "n0", ("one", "run", "a"))]
    assert nodes_action(plan(world(runs=[run], nodes=standing, pods=begun, desired=3))) is None
    over = active(ONE, {"a": TaskState.SUCCESS}, annotation=asks)
    assert nodes_action(plan(world(runs=[over], nodes=standing, desired=3))).nodes == 0


def test_an_annotation_with_a_hold_time_ends_with_it():
    asks = RunAnnotation(nodes=2, hold_seconds=600)
    for started, nodes in ((NOW - 599, 2), (NOW - 601, 0)):
        run = active(ONE, {"a": TaskState.SUCCESS}, started=started, annotation=asks)
        standing = [node("n0"), node("n1")]
        action = nodes_action(plan(world(runs=[run], nodes=standing, desired=2)))
        assert (action.nodes if action else 2) == nodes


def test_a_sleeping_annotation_of_a_dag_without_node_tasks_is_held_too():
    asks = RunAnnotation(nodes=2)
    plain = dag("plain", task("a", node=False, seconds=60))
    action = nodes_action(plan(world(runs=[active(plain, {"a": TaskState.RUNNING}, annotation=asks)])))
    assert (action.nodes, action.reason.code) == (2, ReasonCode.ANNOTATION)


def test_a_refused_annotation_is_said():
    asks = RunAnnotation(refused="it asks for 10**9 nodes; the limit is 20")
    made = plan(world(runs=[coming(ONE, 600, annotation=asks)]))
    assert "the limit is 20" in next(
        each.reason.sentence for each in made.refusals if each.reason.code is ReasonCode.ANNOTATION_REFUSED
    )


SPOT = NodePool("spot", (("pool", "spot"),), ELASTIC.shape, max_nodes=1, boot_seconds=30, provider="scale")
BOTH = replace(
    SETTINGS,
    node_pools=(*SETTINGS.node_pools, SPOT),
    classes=(SETTINGS.classes[0], CapacityClass("burst", ("spot", "elastic"), "burst", SLOT)),
)
NONE_YET = (NodePoolState("elastic", 0), NodePoolState("spot", 0))


def test_demand_overflows_to_the_next_pool_at_the_maximum():
    run = active(WIDE, {f"t{i}": TaskState.SCHEDULED for i in range(9)})
    made = plan(
        world(runs=[run], settings=BOTH, node_pool_states=(NodePoolState("elastic", 0), NodePoolState("spot", 0)))
    )
    assert nodes_action(made, "spot").nodes == 1
    assert nodes_action(made, "elastic").nodes == 2
    assert ReasonCode.AT_MAXIMUM not in codes(made)


def test_a_failing_pool_is_passed_over_at_once_and_said():
    run = active(ONE, {"a": TaskState.SCHEDULED})
    failing = NodePoolState("spot", 1, coming_nodes=1, failure="no spot machines", failed_until=NOW + 60)
    snapshot = world(runs=[run], settings=BOTH, node_pool_states=(NodePoolState("elastic", 0), failing))
    made = plan(snapshot)
    assert nodes_action(made, "elastic").nodes == 1
    assert nodes_action(made, "spot") is None  # what was asked for there stays asked for
    assert ReasonCode.PROVIDER_FAILED in codes(made)
    later = plan(replace(snapshot, now=NOW + 61))
    assert ReasonCode.PROVIDER_FAILED not in codes(later)


def test_a_failing_pool_s_order_is_withdrawn_when_nothing_wants_it():
    failing = NodePoolState("elastic", 2, coming_nodes=2, failure="quota")
    assert nodes_action(plan(world(state=failing))).nodes == 0


def test_a_task_bound_to_a_pool_does_not_overflow():
    bound = dag("bound", *[task(f"t{i}", node_pools=("spot",)) for i in range(9)])
    run = active(bound, {f"t{i}": TaskState.SCHEDULED for i in range(9)})
    made = plan(
        world(runs=[run], settings=BOTH, node_pool_states=(NodePoolState("elastic", 0), NodePoolState("spot", 0)))
    )
    assert nodes_action(made, "elastic") is None
    assert ReasonCode.AT_MAXIMUM in codes(made)


def test_ready_tasks_use_room_that_stands_in_a_later_pool_before_a_node_is_brought():
    run = active(ONE, {"a": TaskState.SCHEDULED})
    states = (NodePoolState("elastic", 1), NodePoolState("spot", 0))
    assert (
        nodes_action(plan(world(runs=[run], nodes=[node("n1")], settings=BOTH, node_pool_states=states)), "spot")
        is None
    )


def test_a_pool_without_a_provider_is_never_ordered_and_its_lack_is_said():
    core = dag("core", *[task(f"t{i}", capacity_class="core") for i in range(9)])
    run = active(core, {f"t{i}": TaskState.SCHEDULED for i in range(9)})
    made = plan(world(runs=[run], nodes=[node("f1", "fixed")]))
    assert nodes_action(made, "fixed") is None
    assert any("fixed has 1 node(s), 3 would be needed" in each.reason.sentence for each in made.refusals)


@pytest.mark.parametrize("seconds", [0.0, 5.0])
def test_an_order_is_given_once(seconds):
    snapshot = world(runs=[coming(ONE, LEAD - 10)])
    made = plan(snapshot)
    assert nodes_action(made) is not None
    assert plan(after(snapshot, made, seconds)).actions == ()


def test_placeholders_hold_the_warm_nodes_and_shrink_as_tasks_take_them():
    snapshot = world(runs=[coming(WIDE, 10)], settings=BY_PLACEHOLDER, state=PLACEHOLDER_STATE)
    assert nodes_action(plan(snapshot)).warm_nodes == 3
    states = {f"t{i}": TaskState.DEFERRED for i in range(5)} | {f"t{i}": TaskState.SCHEDULED for i in range(5, 9)}
    pods = [pod(f"p{i}", f"n{i // 4}", ("wide", "run", f"t{i}")) for i in range(5)]
    held = [placeholder("elastic", i, f"n{i}") for i in range(1, 3)]
    standing = [node(f"n{i}") for i in range(3)]
    consumed = world(
        runs=[active(WIDE, states)],
        nodes=standing,
        pods=[*pods, *held],
        settings=BY_PLACEHOLDER,
        state=PLACEHOLDER_STATE,
    )
    assert nodes_action(plan(consumed)).warm_nodes == 1


def test_pods_that_exist_and_wait_bring_their_node_themselves():
    run = active(ONE, {"a": TaskState.DEFERRED})
    waiting = [pod("p", owner=("one", "run", "a"))]
    assert nodes_action(plan(world(runs=[run], pods=waiting, settings=BY_PLACEHOLDER, state=PLACEHOLDER_STATE))) is None


def test_placeholders_go_to_zero_when_nothing_is_needed():
    held = [placeholder("elastic", 0, "n0"), placeholder("elastic", 1)]
    snapshot = world(nodes=[node("n0")], pods=held, settings=BY_PLACEHOLDER, state=NodePoolState("elastic", None, 1))
    action = nodes_action(plan(snapshot))
    assert (action.nodes, action.warm_nodes, action.release) == (0, 0, ("n0",))


def test_a_number_that_somebody_else_lowered_under_live_demand_is_set_right():
    pods = [pod(f"p{i}", f"n{i}", ("wide", "run", f"t{i}"), requests=POD) for i in range(3)]
    states = {f"t{i}": TaskState.DEFERRED for i in range(3)} | {f"t{i}": TaskState.SUCCESS for i in range(3, 9)}
    snapshot = world(runs=[active(WIDE, states)], nodes=[node(f"n{i}") for i in range(3)], pods=pods, desired=1)
    assert nodes_action(plan(snapshot)).nodes == 3


def test_a_first_pod_seen_before_its_run_does_not_double_the_need():
    run = coming(dag("one", task("a", requests=Resources.of(cpu=3000))), 0.0)
    first = pod("p", "n1", ("one", run.run_id, "a"), requests=Resources.of(cpu=3000, pods=1))
    made = plan(world(runs=[run], nodes=[node("n1")], pods=[first], desired=1))
    assert nodes_action(made) is None
