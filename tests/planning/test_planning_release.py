from __future__ import annotations

from dataclasses import replace

from planning_worlds import (
    ELASTIC,
    HOLD,
    LEAD,
    NOW,
    SETTINGS,
    active,
    after,
    booting,
    coming,
    dag,
    node,
    nodes_action,
    pod,
    task,
    with_pool,
    world,
)

from airflow_elastic.model.demand import TaskState
from airflow_elastic.model.reasons import ReasonCode
from airflow_elastic.model.resources import Resources
from airflow_elastic.model.snapshot import NodePoolState, PlannerMemory, PodPhase
from airflow_elastic.planning.planner import plan

ONE = dag("one", task("a"))


def kept(made, name: str) -> ReasonCode | None:
    return next((each.reason.code for each in made.kept if each.about == name), None)


def test_an_idle_node_goes_when_nothing_needs_it():
    action = nodes_action(plan(world(nodes=[node("n1")], desired=1)))
    assert (action.nodes, action.was, action.release) == (0, 1, ("n1",))
    assert action.reason.code is ReasonCode.RELEASE_NO_DOWNSTREAM
    assert "no unfinished or coming task needs n1 of elastic within the next 96 s" in action.reason.sentence


def test_a_node_stays_while_it_is_needed_sooner_than_a_new_one_would_pay():
    made = plan(world(runs=[coming(ONE, LEAD + HOLD)], nodes=[node("n1")], desired=1))
    assert nodes_action(made) is None
    sentence = next(each.reason.sentence for each in made.kept)
    assert sentence.startswith("n1 stays: one.a needs it in 96 s, sooner than a new node would pay")
    assert nodes_action(plan(world(runs=[coming(ONE, LEAD + HOLD + 1)], nodes=[node("n1")], desired=1))).nodes == 0


def test_a_node_stays_while_a_finished_pod_there_was_not_picked_up():
    def made(state: TaskState, idle_for: float = 10.0):
        finished = pod("p", "n1", ("one", "run", "a"), phase=PodPhase.SUCCEEDED)
        return plan(
            world(
                runs=[active(ONE, {"a": state})],
                nodes=[node("n1")],
                pods=[finished],
                desired=1,
                memory=PlannerMemory(idle_since=(("n1", NOW - idle_for),)),
            )
        )

    assert nodes_action(made(TaskState.DEFERRED)) is None
    assert kept(made(TaskState.DEFERRED), "n1") is ReasonCode.KEPT_UNCOLLECTED
    assert nodes_action(made(TaskState.RUNNING)) is None, "a worker reads its log"
    assert nodes_action(made(TaskState.SUCCESS)).release == ("n1",)
    assert nodes_action(made(TaskState.DEFERRED, idle_for=301.0)).release == ("n1",), "nobody fetches it"


def test_nodes_go_before_the_run_ends_when_no_remaining_task_needs_them():
    tail = dag("tail", *[task(f"w{i}", seconds=600) for i in range(8)], task("end", ["w0", "w1"], 600))
    states = {f"w{i}": TaskState.SUCCESS for i in range(8)} | {"end": TaskState.DEFERRED}
    run = active(tail, states)
    snapshot = world(
        runs=[run], nodes=[node("n0"), node("n1")], pods=[pod("p", "n0", ("tail", "run", "end"))], desired=2
    )
    assert nodes_action(plan(snapshot)).release == ("n1",)


def test_a_node_with_a_pod_of_ours_is_never_released_whatever_its_task_says():
    for pods in (
        [pod("p", "n1")],
        [pod("p", "n1", ("one", "run", "a"))],
        [pod("p", "n1", ("one", "run", "a"), is_deleting=True)],
    ):
        run = active(ONE, {"a": TaskState.SUCCESS})
        made = plan(world(runs=[run], nodes=[node("n1")], pods=pods, desired=1))
        assert nodes_action(made) is None
        assert kept(made, "n1") is ReasonCode.KEPT_BUSY


def test_a_finished_pod_holds_no_node():
    ended = pod("p", "n1", ("one", "run", "a"), phase=PodPhase.SUCCEEDED)
    assert nodes_action(plan(world(nodes=[node("n1")], pods=[ended], desired=1))).release == ("n1",)


def test_a_node_that_says_why_it_must_not_go_stays():
    made = plan(world(nodes=[node("n1", blocks_release="a core pod runs there")], desired=1))
    assert nodes_action(made) is None
    assert "n1 stays: a core pod runs there" in next(each.reason.sentence for each in made.kept)


def test_the_cool_down_after_growth_is_kept():
    grown = PlannerMemory(last_scale_out_at=(("elastic", NOW - 59.0),))
    made = plan(world(nodes=[node("n1")], desired=1, memory=grown))
    assert nodes_action(made) is None
    assert kept(made, "n1") is ReasonCode.KEPT_COOLDOWN
    cooled = PlannerMemory(last_scale_out_at=(("elastic", NOW - 60.0),))
    assert nodes_action(plan(world(nodes=[node("n1")], desired=1, memory=cooled))).nodes == 0


def test_the_minimum_stays():
    settings = with_pool(SETTINGS, replace(ELASTIC, min_nodes=1))
    made = plan(world(nodes=[node("n1"), node("n2")], desired=2, settings=settings))
    assert nodes_action(made).nodes == 1
    assert kept(made, "n2") is ReasonCode.KEEP_MINIMUM


def test_the_longest_idle_goes_first():
    idle = PlannerMemory(idle_since=(("n1", NOW - 10), ("n2", NOW - 500), ("n3", NOW - 50)))
    run = active(ONE, {"a": TaskState.SCHEDULED})
    standing = [node("n1"), node("n2"), node("n3")]
    action = nodes_action(plan(world(runs=[run], nodes=standing, desired=3, memory=idle)))
    assert action.release == ("n2", "n3")


def test_what_is_still_coming_or_booting_goes_before_what_stands():
    state = NodePoolState("elastic", 3, coming_nodes=1)
    run = active(ONE, {"a": TaskState.SCHEDULED})
    action = nodes_action(plan(world(runs=[run], nodes=[node("n1"), booting("b1")], state=state)))
    assert (action.nodes, action.release) == (1, ("b1",))


def test_booting_nodes_are_not_released_in_the_cool_down_of_their_own_order():
    grown = PlannerMemory(last_scale_out_at=(("elastic", NOW - 10.0),))
    assert nodes_action(plan(world(nodes=[booting("b1")], desired=1, memory=grown))) is None


def test_nodes_without_a_provider_are_never_released():
    made = plan(world(nodes=[node("f1", "fixed")]))
    assert nodes_action(made, "fixed") is None
    assert kept(made, "f1") is ReasonCode.KEPT_BLOCKED


def test_cordoned_nodes_are_left_to_whoever_cordoned_them():
    made = plan(world(nodes=[node("n1", usable=False, unusable_because="it is cordoned")], desired=1))
    assert nodes_action(made) is None
    assert kept(made, "n1") is ReasonCode.KEPT_BLOCKED


def test_a_release_is_ordered_once():
    snapshot = world(nodes=[node("n1"), node("n2")], desired=2)
    made = plan(snapshot)
    again = plan(after(snapshot, made, 1.0))
    assert again.actions == ()


def test_idle_time_starts_when_the_last_pod_has_gone():
    run = active(ONE, {"a": TaskState.DEFERRED})
    busy = plan(world(runs=[run], nodes=[node("n1")], pods=[pod("p", "n1", ("one", "run", "a"))], desired=1))
    assert busy.memory.idle_since == ()
    idle = plan(world(runs=[coming(ONE, 5)], nodes=[node("n1")], desired=1))
    assert idle.memory.idle_since == (("n1", NOW),)
    later = plan(replace(world(runs=[coming(ONE, 5)], nodes=[node("n1")], desired=1, memory=idle.memory), now=NOW + 3))
    assert later.memory.idle_since == (("n1", NOW),)


def test_growing_and_shrinking_are_remembered():
    out = plan(world(runs=[coming(ONE, 5)]))
    assert out.memory.scale_out_at("elastic") == NOW
    shrunk = plan(world(nodes=[node("n1")], desired=1))
    assert shrunk.memory.last_scale_in_at == (("elastic", NOW),)


def test_what_comes_is_planned_on_the_node_that_has_to_stay_anyway():
    idle = PlannerMemory(idle_since=(("n1", NOW - 500), ("n2", NOW - 5)))
    must_stay = node("n1", blocks_release="a foreign pod runs there")
    run = active(ONE, {"a": TaskState.SCHEDULED})
    action = nodes_action(plan(world(runs=[run], nodes=[must_stay, node("n2")], desired=2, memory=idle)))
    assert action.release == ("n2",)


def test_a_node_that_only_a_large_pod_needs_is_the_one_that_stays():
    big = dag("big", task("a", requests=Resources.of(cpu=4000)))
    small_left = node("n1", foreign=Resources.of(cpu=2000))
    idle = PlannerMemory(idle_since=(("n1", NOW - 5), ("n2", NOW - 500)))
    run = active(big, {"a": TaskState.SCHEDULED})
    action = nodes_action(plan(world(runs=[run], nodes=[small_left, node("n2")], desired=2, memory=idle)))
    assert action.release == ("n1",)
