from __future__ import annotations

from dataclasses import replace

import pytest
from planning_worlds import (
    ELASTIC,
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
    world,
)

from airflow_elastic.model.demand import RunAnnotation, TaskState
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.reasons import ReasonCode
from airflow_elastic.model.reservation import TRANSITIONS, Reservation, ReservationState
from airflow_elastic.model.settings import Mode
from airflow_elastic.model.snapshot import NodePoolState
from airflow_elastic.planning.planner import plan
from airflow_elastic.planning.reservations import move

ONE = dag("one", task("a"))
S = ReservationState


def held(state: ReservationState, **more: object) -> Reservation:
    asked = None if state is S.PLANNED else NOW - 30
    fields: dict[str, object] = {"needed_at": NOW + 20, "until_at": NOW + 80, "ask_at": NOW - 46, "asked_at": asked}
    fields |= {"expires_at": NOW + 3620, **more}
    return Reservation("one", "run", "elastic", 1, state, **fields)  # type: ignore[arg-type]


def only(made) -> Reservation:
    (reservation,) = made.reservations
    return reservation


def states_along(made) -> list[str]:
    return [each.reason.sentence for each in made.transitions]


def test_a_coming_run_is_planned_and_said_so():
    made = plan(world(runs=[coming(ONE, 600, "run")]))
    each = only(made)
    assert (each.state, each.nodes, each.needed_at, each.ask_at) == (S.PLANNED, 1, NOW + 600, NOW + 600 - LEAD)
    assert each.expires_at == NOW + 600 + 3600
    assert made.transitions[0].reason.code is ReasonCode.RESERVATION_PLANNED
    forecast = made.runs[0]
    assert (forecast.nodes, forecast.needed_at, forecast.ask_at, forecast.until_at) == (
        1,
        NOW + 600,
        NOW + 600 - LEAD,
        NOW + 660,
    )


def test_it_is_requested_in_the_very_plan_that_asks_for_its_nodes():
    made = plan(world(runs=[coming(ONE, LEAD, "run")]))
    assert (only(made).state, only(made).asked_at, only(made).warm_nodes) == (S.REQUESTED, NOW, 1)
    assert nodes_action(made) is not None


@pytest.mark.parametrize(
    ("state", "snapshot", "becomes"),
    [
        (S.REQUESTED, {"state": NodePoolState("elastic", 1, coming_nodes=1)}, S.WARMING),
        (S.REQUESTED, {"nodes": [booting("b")], "desired": 1}, S.WARMING),
        (S.REQUESTED, {"nodes": [node("n")], "desired": 1}, S.READY),
        (S.WARMING, {"nodes": [node("n")], "desired": 1}, S.READY),
        (S.READY, {"nodes": [node("n")], "desired": 1}, S.READY),
        (S.READY, {"nodes": [], "state": NodePoolState("elastic", 1, coming_nodes=1)}, S.WARMING),
        (S.PLANNED, {"nodes": [node("n")], "desired": 1}, S.READY),
        (S.REQUESTED, {"state": NodePoolState("elastic", 1, 1, failure="quota")}, S.FAILED),
        (S.WARMING, {"state": NodePoolState("elastic", 1, 1, failure="quota")}, S.FAILED),
        (S.FAILED, {"state": NodePoolState("elastic", 1, 1, failure="quota", failed_until=NOW - 1)}, S.REQUESTED),
        (S.FAILED, {"state": NodePoolState("elastic", 1, 1, failure="quota")}, S.FAILED),
    ],
)
def test_it_follows_the_nodes(state, snapshot, becomes):
    made = plan(world(runs=[coming(ONE, 20, "run")], reservations=(held(state),), **snapshot))
    assert only(made).state is becomes
    assert bool(made.transitions) == (state is not becomes)


def test_a_bound_pod_puts_it_in_use_and_renews_its_longest_hold():
    run = active(ONE, {"a": TaskState.DEFERRED})
    old = held(S.READY, expires_at=NOW + 5)
    snapshot = world(
        runs=[run], nodes=[node("n1")], pods=[pod("p", "n1", ("one", "run", "a"))], desired=1, reservations=(old,)
    )
    each = only(plan(snapshot))
    assert (each.state, each.expires_at, each.warm_nodes) == (S.IN_USE, NOW + 3600, 0)
    later = plan(replace(snapshot, now=NOW + 60, reservations=(each,)))
    assert only(later).expires_at == each.expires_at  # not written anew every second


@pytest.mark.parametrize("state", [S.PLANNED, S.REQUESTED, S.WARMING, S.READY, S.IN_USE])
def test_a_run_that_ended_or_vanished_releases_it(state):
    gone = plan(world(reservations=(held(state),)))
    assert only(gone).state is S.RELEASED
    ended = plan(world(runs=[active(ONE, {"a": TaskState.SUCCESS})], reservations=(held(state),)))
    assert only(ended).state is S.RELEASED
    assert plan(world(reservations=gone.reservations)).reservations == ()


def test_a_paused_dag_releases_its_coming_run():
    paused = replace(ONE, is_paused=True)
    assert only(plan(world(runs=[coming(paused, 20, "run")], reservations=(held(S.READY),)))).state is S.RELEASED


def test_an_expired_reservation_holds_nothing_until_its_tasks_are_really_ready():
    late = coming(ONE, -3600, "run")
    old = held(S.READY, needed_at=NOW - 3600, expires_at=NOW)
    snapshot = world(runs=[late], nodes=[node("n1")], desired=1, reservations=(old,))
    made = plan(snapshot)
    assert only(made).state is S.EXPIRED
    assert made.transitions[0].reason.code is ReasonCode.RESERVATION_EXPIRED
    assert nodes_action(made).release == ("n1",)
    again = plan(after(snapshot, made, 1.0))
    assert again.actions == ()
    assert only(again).state is S.EXPIRED  # it stays on record, so that it is not opened again
    ready = active(ONE, {"a": TaskState.SCHEDULED})
    assert nodes_action(plan(world(runs=[ready], reservations=again.reservations))).nodes == 1


def test_an_expired_annotation_holds_nothing_either():
    asks = RunAnnotation(nodes=4)
    run = coming(ONE, -7200, "run", annotation=asks)
    expired = (held(S.EXPIRED, needed_at=NOW - 7200, expires_at=NOW - 10),)
    made = plan(world(runs=[run], nodes=[node(f"n{i}") for i in range(4)], desired=4, reservations=expired))
    assert nodes_action(made).nodes == 0
    assert only(made).state is S.EXPIRED


def test_an_annotation_s_hold_time_extends_the_longest_hold_up_to_the_limit():
    for hold, expires in ((7200.0, 7200.0), (10 * 3600.0, 4 * 3600.0), (60.0, 3600.0)):
        asks = RunAnnotation(nodes=2, hold_seconds=hold)
        assert only(plan(world(runs=[coming(ONE, LEAD, "run", asks)]))).expires_at == NOW + LEAD + expires


def test_use_after_expiry_opens_it_anew():
    run = active(ONE, {"a": TaskState.DEFERRED})
    snapshot = world(
        runs=[run],
        nodes=[node("n1")],
        pods=[pod("p", "n1", ("one", "run", "a"))],
        desired=1,
        reservations=(held(S.EXPIRED),),
    )
    assert only(plan(snapshot)).state is S.IN_USE


def test_a_planned_run_that_moves_moves_its_reservation():
    first = plan(world(runs=[coming(ONE, 600, "run")]))
    moved = plan(world(runs=[coming(ONE, 900, "run")], reservations=first.reservations))
    assert only(moved).needed_at == NOW + 900
    assert only(moved).ask_at == NOW + 900 - LEAD
    nearly = plan(world(runs=[coming(ONE, 602, "run")], reservations=first.reservations))
    assert only(nearly) is first.reservations[0]


def test_a_late_run_does_not_prolong_its_longest_hold_for_ever():
    waits = dag("one", task("sensor", node=False, seconds=5), task("a", ["sensor"]))
    reservations: tuple[Reservation, ...] = ()
    for minute in range(0, 62):
        run = active(waits, {"sensor": TaskState.RUNNING}, started=NOW)
        snapshot = world(runs=[run], nodes=[node("n1")], desired=1, reservations=reservations)
        reservations = plan(replace(snapshot, now=NOW + 60 * minute)).reservations
    assert reservations[0].state is S.EXPIRED


def test_without_leave_to_act_nothing_is_said_to_be_requested():
    for mode in (Mode.OBSERVE, Mode.SYNC):
        made = plan(world(runs=[coming(ONE, 5, "run")], settings=replace(SETTINGS, mode=mode)))
        assert only(made).state is S.PLANNED


def test_overflow_is_owned_in_the_pool_where_it_lands():
    spot = NodePool("spot", (("pool", "spot"),), ELASTIC.shape, max_nodes=1, boot_seconds=30, provider="scale")
    burst = replace(SETTINGS.classes[1], node_pools=("spot", "elastic"))
    settings = replace(SETTINGS, node_pools=(*SETTINGS.node_pools, spot), classes=(SETTINGS.classes[0], burst))
    wide = dag("wide", *[task(f"t{i}") for i in range(9)])
    states = (NodePoolState("elastic", 0), NodePoolState("spot", 0))
    run = active(wide, {f"t{i}": TaskState.SCHEDULED for i in range(9)})
    made = plan(world(runs=[run], settings=settings, node_pool_states=states))
    assert {each.node_pool: each.nodes for each in made.reservations} == {"spot": 1, "elastic": 2}


def test_only_edges_of_the_table_are_taken():
    with pytest.raises(ValueError, match="cannot go from released to ready"):
        move(held(S.RELEASED), S.READY, NOW)
    for (old, new), why in TRANSITIONS.items():
        moved = move(held(old), new, NOW)
        assert (moved.state, moved.why, moved.changed_at) == (new, why, NOW)
