"""What holds in every world. ``HYPOTHESIS_EXAMPLES=10000`` looks at many more."""

from __future__ import annotations

import os
from dataclasses import replace

from hypothesis import HealthCheck, given, note
from hypothesis import settings as hypothesis_settings
from planning_worlds import after
from strategies import worlds

from airflow_elastic.model.demand import RunPhase
from airflow_elastic.model.plan import Plan, SetNodes, SetSlots
from airflow_elastic.model.reasons import ReasonCode
from airflow_elastic.model.reservation import TRANSITIONS
from airflow_elastic.model.settings import Mode
from airflow_elastic.model.snapshot import Snapshot
from airflow_elastic.planning.planner import plan
from airflow_elastic.planning.vectors import one_pod, room_amount

EXAMPLES = (
    10_000 if os.environ.get("HYPOTHESIS_PROFILE") == "long" else int(os.environ.get("HYPOTHESIS_EXAMPLES", "25"))
)
many = hypothesis_settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def nodes_actions(made: Plan) -> list[SetNodes]:
    return [each for each in made.actions if isinstance(each, SetNodes)]


@given(worlds())
@many
def test_limits_are_kept_and_nothing_of_ours_is_hurt(snapshot: Snapshot):
    made = plan(snapshot)
    pods_on = {pod.node for pod in snapshot.pods if pod.takes_room and pod.node}
    for action in nodes_actions(made):
        note(str(action))
        pool = snapshot.settings.node_pool(action.node_pool)
        state = next((each for each in snapshot.node_pool_states if each.node_pool == pool.name), None)
        standing = [node for node in snapshot.nodes if node.node_pool == pool.name and not node.is_releasing]
        assert pool.provider != "none"
        # Never above the maximum, unless more stands there already (somebody else's doing), and then never more still.
        there = sum(not node.is_lost for node in standing)
        assert action.nodes <= max(pool.max_nodes, there, state.desired_nodes or 0 if state else 0)
        assert 0 <= action.warm_nodes <= max(action.nodes, 0)
        names = {node.name for node in standing}
        assert set(action.release) <= names
        assert len(set(action.release)) == len(action.release)
        for name in action.release:
            node = next(each for each in standing if each.name == name)
            assert name not in pods_on
            assert not node.blocks_release
            assert node.usable or node.is_booting
        capable = sum(node.usable or node.is_booting for node in standing) - len(action.release)
        if action.release:
            grown = snapshot.memory.scale_out_at(pool.name)
            assert grown is None or snapshot.now - grown >= snapshot.settings.scaling.scale_in_cooldown_seconds
            coming = state.coming_nodes if state and not state.failure else 0
            assert capable + coming >= min(pool.min_nodes, capable + len(action.release) + coming)


@given(worlds(modes=tuple(Mode)))
@many
def test_the_mode_bounds_what_is_done(snapshot: Snapshot):
    made = plan(snapshot)
    mode = snapshot.settings.mode
    if mode is Mode.OBSERVE:
        assert made.actions == ()
    if mode is Mode.SYNC:
        assert not nodes_actions(made)


@given(worlds(modes=tuple(Mode)))
@many
def test_slots_never_exceed_what_fits_and_come_down_before_nodes_go(snapshot: Snapshot):
    made = plan(snapshot)
    ranks = [(0 if each.is_down else 2) if isinstance(each, SetSlots) else 1 for each in made.actions]
    assert ranks == sorted(ranks)
    gone = {name for action in nodes_actions(made) for name in action.release}
    slots = [each for each in made.actions if isinstance(each, SetSlots)]
    finishing = {each.airflow_pool for each in slots if each.reason.code is ReasonCode.SLOTS_FOR_FINISHED}
    for chosen, releasing in ((dict(made.usable_slots), set()), (written(made), gone)):
        usage = [each for each in chosen.items() if each[0] not in finishing]
        assert fits(snapshot, dict(usage), releasing), (usage, releasing)


def written(made: Plan) -> dict[str, int]:
    return {each.airflow_pool: each.slots for each in made.actions if isinstance(each, SetSlots)}


def fits(snapshot: Snapshot, slots: dict[str, int], releasing: set[str]) -> bool:
    """Check against a bound that is worked out apart from the planner: each pool alone, and all on cpu together."""
    usable = [n for n in snapshot.nodes if n.usable and not n.is_releasing and n.name not in releasing]
    cpu_asked = 0
    for name, count in slots.items():
        classes = [each for each in snapshot.settings.classes if each.airflow_pool == name]
        most = 0
        for node in usable:
            best = 0
            for each in classes:
                if node.node_pool in each.node_pools:
                    shape = one_pod(each.slot_shape)
                    free = {k: room_amount(node.allocatable, k) - node.foreign.get(k) for k in shape.names}
                    best = max(best, min(max(free[k], 0) // v for k, v in shape.amounts))
            most += best
        if count > most:
            return False
        cpu_asked += count * min((each.slot_shape.get("cpu") for each in classes), default=0)
    return cpu_asked <= sum(n.allocatable.get("cpu") - n.foreign.get("cpu") for n in usable)


@given(worlds(modes=tuple(Mode)))
@many
def test_the_same_world_gives_the_same_plan(snapshot: Snapshot):
    again = replace(snapshot, runs=tuple(replace(run, shape=replace(run.shape)) for run in snapshot.runs))
    assert plan(snapshot) == plan(again)


@given(worlds())
@many
def test_a_plan_that_was_carried_out_leaves_nothing_to_do(snapshot: Snapshot):
    made = plan(snapshot)
    second = after(snapshot, made)
    again = plan(second)
    if any(pool.provider == "placeholder" for pool in snapshot.settings.node_pools):
        # What placeholders stand for follows from how many there are: that may take one more step.
        second = after(second, again)
        again = plan(second)
    assert again.actions == (), (made.actions, again.actions)


@given(worlds())
@many
def test_without_demand_everything_goes_to_the_minimum(snapshot: Snapshot):
    idle = replace(snapshot, runs=(), pods=tuple(pod for pod in snapshot.pods if pod.placeholder_of),
                   memory=replace(snapshot.memory, last_scale_out_at=()),
                   nodes=tuple(replace(node, blocks_release="") for node in snapshot.nodes))  # fmt: skip
    made = plan(idle)
    ended = after(idle, made)
    for pool in idle.settings.node_pools:
        if pool.provider == "none":
            continue
        left = [
            n for n in ended.nodes if n.node_pool == pool.name and (n.usable or n.is_booting) and not n.is_releasing
        ]
        assert len(left) <= max(pool.min_nodes, 0)
        held = [pod for pod in ended.pods if pod.placeholder_of and pod.node_pools == (pool.name,)]
        assert len(held) <= pool.min_nodes
    assert all(each.state.is_over for each in made.reservations)


@given(worlds())
@many
def test_reservations_take_only_edges_of_the_table_and_always_end(snapshot: Snapshot):
    before = {each.id: each for each in snapshot.reservations}
    made = plan(snapshot)
    assert len({each.id for each in made.reservations}) == len(made.reservations)
    for each in made.reservations:
        old = before.get(each.id)
        if old is not None and old.state is not each.state and each.asked_at == old.asked_at:
            assert (old.state, each.state) in TRANSITIONS or old.state.is_over
        if each.state.holds_capacity and each.state.name != "IN_USE":
            longest = max(snapshot.settings.scaling.max_hold_seconds, snapshot.settings.limits.max_hold_seconds)
            assert (
                each.expires_at
                <= max(snapshot.now, each.needed_at, each.asked_at or 0.0, old.expires_at if old else 0.0) + longest
            )
        assert each.nodes >= 0
    noted = {each.reservation_id for each in made.transitions}
    for each in made.reservations:
        if each.id not in before or before[each.id].state is not each.state:
            assert each.id in noted


@given(worlds())
@many
def test_more_waiting_runs_than_may_be_active_never_order_more(snapshot: Snapshot):
    waiting = [run for run in snapshot.runs if run.phase is RunPhase.QUEUED and run.annotation is None]
    if not waiting:
        return
    first = waiting[0]
    one = replace(first, shape=replace(first.shape, max_active_runs=1))
    alone = replace(snapshot, runs=(one,), reservations=(), pods=())
    thirty = tuple(replace(one, run_id=f"day{i:02}", starts_at=one.starts_at + i) for i in range(30))
    many_days = plan(replace(alone, runs=thirty))
    single = plan(alone)
    wanted = {each.node_pool: each.steps[0][1] for each in single.node_pools}
    assert {each.node_pool: each.steps[0][1] for each in many_days.node_pools} == wanted


@given(worlds())
@many
def test_every_ready_task_that_can_run_gets_a_node_or_a_reason(snapshot: Snapshot):
    made = plan(snapshot)
    said = {each.about for each in made.refusals}
    for forecast in made.node_pools:
        pool = snapshot.settings.node_pool(forecast.node_pool)
        nodes = [n for n in snapshot.nodes if n.node_pool == pool.name and not n.is_releasing]
        have = sum(n.usable or n.is_booting for n in nodes)
        state = next((each for each in snapshot.node_pool_states if each.node_pool == pool.name), None)
        coming = state.coming_nodes if state and not state.failure else 0
        action = next((each for each in nodes_actions(made) if each.node_pool == pool.name), None)
        blocked = pool.provider == "none" or (state is not None and state.failure)
        if forecast.target_nodes > have + coming and not blocked and pool.provider == "scale":
            assert action is not None or (state and (state.desired_nodes or 0) >= forecast.target_nodes)
        if blocked and forecast.target_nodes > max(have + coming, pool.min_nodes):
            assert pool.name in said


def test_the_strategies_reach_what_they_are_for():
    """A world with nothing in it would prove nothing: over some examples every kind of decision occurs."""
    seen: set[str] = set()

    @given(worlds())
    @hypothesis_settings(max_examples=150, deadline=None, database=None, derandomize=True,
                         suppress_health_check=list(HealthCheck))  # fmt: skip
    def look(snapshot: Snapshot) -> None:
        made = plan(snapshot)
        for action in nodes_actions(made):
            seen.add("out" if action.is_out else "in")
            seen.update({"release"} if action.release else ())
        seen.update(each.reason.code.name for each in (*made.refusals, *made.kept, *made.transitions))
        seen.update(each.state.name for each in made.reservations)
        if any(pod.requests.get("cpu") > 0 for pod in snapshot.pods) and made.usable_slots != ():
            seen.add("slots")

    look()
    assert seen >= {
        "out", "in", "release", "slots", "IMPOSSIBLE_TASK", "UNKNOWN_CLASS", "AT_MAXIMUM", "PROVIDER_FAILED",
        "KEPT_BUSY", "KEPT_BLOCKED", "KEPT_COOLDOWN", "RESERVATION_PLANNED", "RESERVATION_CHANGED",
        "READY", "IN_USE", "REQUESTED", "EXPIRED", "RELEASED",
    }  # fmt: skip
