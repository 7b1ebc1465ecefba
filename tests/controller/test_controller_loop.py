from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest
from controller_world import POOL_LABEL, SCALING, SHAPE, run_of, scaled_pool, settings_of, wait_until

from airflow_elastic.controller import loop
from airflow_elastic.errors import TemporaryError
from airflow_elastic.model.demand import RunPhase, TaskState
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.settings import Mode
from airflow_elastic.model.snapshot import NodePoolState
from airflow_elastic.providers.base import Outcome

OPTIONS = (("version", "v1"), ("plural", "things"), ("name", "lame"))


def usable(world):
    return sum(node.usable for node in world.views[-1].nodes(world.settings.settings))


def slots(world):
    pool = world.airflow.pools.get("burst")
    return pool.slots if pool else 0


def test_nodes_stand_before_a_coming_run_and_slots_come_after_them(make_world):
    world = make_world()
    controller = world.controller()
    world.airflow.runs = (run_of(4, starts_at=time.time() + 3.0),)
    seen = []

    def warm():
        seen.append((usable(world), slots(world)))
        return seen[-1] == (2, 8)

    world.ticks(controller, warm)
    assert all(slot <= 4 * nodes for nodes, slot in seen)
    assert world.replicas() == 2
    assert [each.dag_id for each in world.memory.reservations] == ["etl"]
    assert world.memory.reservations[0].state.holds_capacity
    assert {"PREWARM"} <= {each.code for each in world.memory.decisions if each.kind == "nodes"}
    assert world.memory.status["airflow_pools"][0]["slots"] in (0, 8)
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/airflow-elastic-controller"
    assert world.api.call("GET", path)[1]["spec"]["holderIdentity"] == "fake:1"
    controller.close()
    assert not world.api.call("GET", path)[1]["spec"]["holderIdentity"]


def test_nodes_go_when_nothing_needs_them_and_their_slots_before(make_world):
    world = make_world(nodes=2)
    world.airflow.runs = (run_of(4, starts_at=time.time(), phase=RunPhase.ACTIVE, state=TaskState.SCHEDULED),)
    controller = world.controller()
    world.ticks(controller, lambda: slots(world) == 8)
    world.airflow.runs = ()
    world.ticks(controller, lambda: world.replicas() == 0 and not world.nodes())
    assert slots(world) == 0
    assert [each for _, each in world.airflow.writes] == [8, 0]


def test_slots_follow_a_node_that_goes_and_comes_back_within_one_look_at_the_database(make_world):
    world = make_world(nodes=2)
    world.settings.settings = settings_of(scaled_pool(), mode=Mode.SYNC)  # nobody replaces the cordoned node
    controller = world.controller()
    world.ticks(controller, lambda: slots(world) == 8)
    node = world.nodes()[0]["metadata"]["name"]
    for cordoned, expected in ((True, 4), (False, 8), (True, 4)):
        body = {"spec": {"unschedulable": cordoned}}
        world.api.call("PATCH", f"/api/v1/nodes/{node}", body, content_type="application/merge-patch+json")
        wait_until(lambda cordoned=cordoned: usable(world) == (1 if cordoned else 2))
        controller.tick("nodes")  # with the look that was read before the first of these changes
        assert slots(world) == expected
    controller.close()


def test_a_controller_killed_during_a_prewarm_is_continued_by_the_next(make_world):
    world = make_world(boot=1.5)
    first = world.controller()
    world.airflow.runs = (run_of(4, starts_at=time.time() + 2.0),)
    world.ticks(first, lambda: world.replicas() == 2)
    world.views[-1].stop()  # kill -9: nothing is said, nothing is saved

    second = world.controller()
    world.ticks(second, lambda: usable(world) == 2)
    assert world.replicas() == 2
    assert len(world.nodes()) == 2
    world.airflow.runs = ()
    world.ticks(second, lambda: not world.nodes())
    assert world.replicas() == 0
    assert not [each for each in world.memory.reservations if each.state.holds_capacity]


def test_a_release_that_was_left_half_done_is_undone(make_world):
    world = make_world(nodes=1)
    world.airflow.runs = (run_of(2, starts_at=time.time() + 30.0, phase=RunPhase.ACTIVE, state=TaskState.SCHEDULED),)
    name = world.nodes()[0]["metadata"]["name"]
    marks = {"airflow-elastic.io/release": f"{time.time() - 60:.3f}", "airflow-elastic.io/cordoned": "true"}
    body = {"metadata": {"annotations": marks}, "spec": {"unschedulable": True}}
    world.api.call("PATCH", f"/api/v1/nodes/{name}", body, content_type="application/merge-patch+json")
    controller = world.controller()
    world.ticks(controller, lambda: usable(world) == 1 and slots(world) == 4)
    assert world.replicas() == 1
    assert not {"airflow-elastic.io/release"} & set(world.nodes()[0]["metadata"]["annotations"])


@pytest.mark.parametrize("how", ["cordon", "loss", "removal"])
def test_slots_follow_a_node_within_a_second(make_world, how):
    world = make_world(nodes=2)
    world.settings.settings = settings_of(scaled_pool(min_nodes=2))
    controller = world.controller()
    thread = threading.Thread(target=controller.run)
    thread.start()
    try:
        wait_until(lambda: slots(world) == 8)
        name = world.nodes()[0]["metadata"]["name"]
        began = time.monotonic()
        if how == "cordon":
            body = {"spec": {"unschedulable": True}}
            world.api.call("PATCH", f"/api/v1/nodes/{name}", body, content_type="application/merge-patch+json")
        elif how == "loss":
            world.cluster.fail_node(name)
        else:
            world.cluster.remove_node(name)
        wait_until(lambda: 4 in [each for _, each in world.airflow.writes])
        assert time.monotonic() - began < 1.0
    finally:
        controller.stop()
        thread.join(5)
    assert not thread.is_alive()
    assert not world.leader.is_held


def test_a_silent_database_freezes_and_never_empties(make_world):
    world = make_world(nodes=2)
    world.settings.settings = replace(
        settings_of(scaled_pool(min_nodes=2)), scaling=replace(SCALING, stale_after_seconds=0.5)
    )
    controller = world.controller()
    world.ticks(controller, lambda: slots(world) == 8)
    world.airflow.is_silent = world.memory.is_silent = world.leader.is_silent = True
    time.sleep(0.6)
    tick = controller.tick()
    assert tick.plan is None or tick.plan.frozen is not None
    assert world.replicas() == 2
    assert slots(world) == 8


def test_a_silent_cluster_freezes_and_never_empties(make_world):
    world = make_world(nodes=2)
    world.settings.settings = replace(
        settings_of(scaled_pool(min_nodes=2)), scaling=replace(SCALING, stale_after_seconds=0.3)
    )
    controller = world.controller()
    world.ticks(controller, lambda: slots(world) == 8)
    world.views[-1].stop()
    wait_until(lambda: world.views[-1].age_seconds() > 0.3)
    assert controller.tick().plan.frozen is not None
    assert slots(world) == 8
    assert "FROZEN_CLUSTER" in {each.code for each in world.memory.decisions}


def test_mode_observe_recommends_and_changes_nothing(make_world):
    world = make_world(nodes=1)
    world.settings.settings = settings_of(scaled_pool(), mode=Mode.OBSERVE)
    controller = world.controller()
    world.airflow.runs = (run_of(4, starts_at=time.time() + 1.0),)
    tick = controller.tick()
    assert tick.plan.refusals
    assert not world.airflow.writes
    assert not world.airflow.pools
    assert world.replicas() == 1
    assert world.memory.status["mode"] == "observe"


def test_mode_sync_keeps_pools_true_and_leaves_nodes_alone(make_world):
    world = make_world(nodes=1)
    world.settings.settings = settings_of(scaled_pool(), mode=Mode.SYNC)
    controller = world.controller()
    world.airflow.runs = (run_of(8, starts_at=time.time() + 1.0),)
    world.ticks(controller, lambda: slots(world) == 4)
    for _ in range(5):
        controller.tick()
    assert world.replicas() == 1


def test_without_a_capacity_file_nothing_is_written_anywhere(make_world):
    world = make_world(nodes=1)
    controller = world.controller()
    controller._parts.is_configured = False
    world.airflow.runs = (run_of(4, starts_at=time.time()),)
    tick = controller.tick()
    assert tick.plan is not None
    assert not tick.is_leader
    assert (world.airflow.writes, world.airflow.pools, world.memory.status_writes) == ([], {}, 0)
    assert (world.memory.decisions, world.memory.reservations, world.leader.token) == ([], (), 0)
    assert world.replicas() == 1


def test_a_standby_does_nothing_and_takes_over_when_the_leader_is_gone(make_world):
    world = make_world(nodes=1)
    world.leader.is_taken = True
    controller = world.controller()
    assert controller.tick().why_not == "another controller leads"
    assert not world.airflow.pools
    world.leader.is_taken = False
    controller._leading.doubt()
    assert controller.tick().is_leader
    assert world.airflow.pools


def test_a_leader_that_was_fenced_off_stops_at_its_next_write(make_world):
    world = make_world(nodes=1)
    world.settings.settings = settings_of(scaled_pool(min_nodes=1))
    controller = world.controller()
    assert controller.tick().is_leader
    world.leader.token += 1  # another controller took over
    world.leader.is_taken = True
    world.airflow.runs = (run_of(4, starts_at=time.time()),)
    assert not controller.tick().is_leader
    assert world.replicas() == 1


def test_a_jump_of_the_clock_is_followed_by_a_fresh_look(make_world):
    world = make_world(nodes=1)
    controller = world.controller()
    now = time.time()
    controller._wall = controller._observer.wall_clock = lambda: now
    controller.tick()
    now += 3600.0
    reads = world.airflow.reads
    controller.tick("nodes")  # a cause that may use an older look
    assert world.airflow.reads == reads + 1
    assert world.leader.token == 1
    wait_until(lambda: world.views[-1].age_seconds() < 1.0)


def test_the_profiles_learn_boot_times_and_survive_the_process(make_world):
    world = make_world()
    controller = world.controller()
    world.airflow.runs = (run_of(2, starts_at=time.time() + 1.0),)
    world.ticks(controller, lambda: usable(world) == 1)
    controller.tick()
    controller.close()
    assert world.memory.profiles["profiles"]
    world.airflow.runs = ()
    again = world.controller()
    boots = dict(again.tick().observation.snapshot.boot)
    assert boots["elastic"].samples == 1
    assert 0.2 < boots["elastic"].q50_seconds < 3.0


def test_no_error_ends_the_loop(make_world, monkeypatch):
    world = make_world(nodes=1)
    world.settings.settings = settings_of(scaled_pool(min_nodes=1))
    controller = world.controller()
    broken = [ValueError("odd row"), KeyError("x"), RuntimeError("worse")] * 2
    read = type(world.airflow).read

    def sometimes(self, *arguments):
        if broken:
            raise broken.pop()
        return read(self, *arguments)

    monkeypatch.setattr(type(world.airflow), "read", sometimes)
    thread = threading.Thread(target=controller.run)
    thread.start()
    try:
        wait_until(lambda: slots(world) == 4, seconds=10.0)
    finally:
        controller.stop()
        thread.join(5)
    assert not broken


def test_where_slots_cannot_go_down_no_node_goes(make_world, monkeypatch):
    world = make_world(nodes=2)
    world.airflow.runs = (run_of(4, starts_at=time.time(), phase=RunPhase.ACTIVE, state=TaskState.SCHEDULED),)
    controller = world.controller()
    world.ticks(controller, lambda: slots(world) == 8)

    def locked(self, *_):
        raise TemporaryError("the row is locked")

    write = type(world.airflow).write_slots
    monkeypatch.setattr(type(world.airflow), "write_slots", locked)
    world.airflow.runs = ()
    for _ in range(10):
        controller.tick()
        world.views[-1].wait(0.1)
    assert world.replicas() == 2
    assert any("slots go down first" in each.sentence for each in world.memory.decisions)
    monkeypatch.setattr(type(world.airflow), "write_slots", write)
    world.ticks(controller, lambda: world.replicas() == 0)


def test_a_changed_file_is_used_at_once_and_providers_of_unchanged_pools_stay(make_world):
    world = make_world(nodes=1)
    world.settings.settings = settings_of(scaled_pool(min_nodes=1))
    controller = world.controller()
    controller.tick()
    provider = controller._providers["elastic"]
    extra = NodePool("fixed", (("x", "y"),), SHAPE, provider="none")
    world.settings.settings = settings_of(scaled_pool(min_nodes=1), extra)
    controller.tick()
    assert controller._providers["elastic"] is provider
    assert set(controller._providers) == {"elastic", "fixed"}
    world.settings.settings = settings_of(scaled_pool(min_nodes=2))
    world.ticks(controller, lambda: world.replicas() == 2)
    assert controller._providers["elastic"] is not provider


def test_a_pool_whose_object_is_missing_fails_alone(make_world):
    world = make_world(nodes=1)
    missing = scaled_pool("nowhere", min_nodes=1)
    world.settings.settings = settings_of(scaled_pool(min_nodes=2), missing)
    controller = world.controller()
    world.ticks(controller, lambda: usable(world) == 2)
    states = {pool["name"]: pool["failure"] for pool in world.memory.status["node_pools"]}
    assert states["elastic"] == ""
    assert "provider_options" in states["nowhere"]


def test_an_airflow_pool_that_somebody_deleted_or_switched_over_is_mended(make_world):
    world = make_world(nodes=1)
    world.settings.settings = settings_of(scaled_pool(min_nodes=1))
    controller = world.controller()
    world.ticks(controller, lambda: slots(world) == 4)
    del world.airflow.pools["burst"]
    world.ticks(controller, lambda: slots(world) == 4)
    world.airflow.pools["burst"] = replace(world.airflow.pools["burst"], include_deferred=False)
    world.ticks(controller, lambda: world.airflow.pools["burst"].include_deferred)
    assert [each.sentence for each in world.memory.decisions if each.code == "NOTE" and each.about == "burst"] == [
        "Airflow pool burst: created", "Airflow pool burst: created", "Airflow pool burst: counts deferred tasks now",
    ]  # fmt: skip


def test_a_pool_that_could_not_be_made_at_first_is_made_later(make_world, monkeypatch):
    world = make_world(nodes=1)
    failing = [TemporaryError("the table is locked")] * 2
    make = world.airflow.ensure_pool

    def ensure(self, *arguments):
        if failing:
            raise failing.pop()
        return make(*arguments)

    monkeypatch.setattr(type(world.airflow), "ensure_pool", ensure)
    world.ticks(world.controller(), lambda: "burst" in world.airflow.pools)


@pytest.mark.parametrize("profiles", [5, [], {"tasks": 5}, {"tasks": {"a": None}, "boots": "x", "widths": [1]}])
def test_whatever_stands_where_the_learnt_was_kept_a_controller_leads(make_world, profiles):
    world = make_world(nodes=1)
    world.settings.settings = settings_of(scaled_pool(min_nodes=1))
    world.memory.profiles = {"profiles": profiles, "observed_until": "yesterday"}
    world.ticks(world.controller(), lambda: slots(world) == 4)


def test_who_lost_the_lead_between_two_actions_leaves_the_rest_alone(make_world):
    world = make_world()
    controller = world.controller()
    world.ticks(controller, lambda: bool(world.airflow.pools))
    world.airflow.runs = (run_of(4, starts_at=time.time(), phase=RunPhase.ACTIVE, state=TaskState.SCHEDULED),)
    asked = []

    def leads(token):
        asked.append(token)
        return len(asked) < 2  # at the start of acting, and then no more

    controller._leads = leads
    tick = controller.tick()
    assert not tick.is_leader
    assert "not certain any more" in tick.why_not
    assert world.replicas() == 0


def test_a_cooldown_ends_in_time_though_the_clock_is_set_back(make_world):
    world = make_world()
    shift = [0.0]
    controller = world.controller()
    controller._wall = controller._observer.wall_clock = lambda: time.time() + shift[0]
    world.airflow.runs = (run_of(4, starts_at=time.time(), phase=RunPhase.ACTIVE, state=TaskState.SCHEDULED),)
    world.ticks(controller, lambda: usable(world) == 2)
    shift[0] = -3600.0
    world.airflow.runs = ()
    world.ticks(controller, lambda: not world.nodes())


@pytest.mark.parametrize("broken", ["state", "apply", "sweep"])
def test_a_provider_that_raises_what_nobody_foresaw_holds_up_nobody_else(make_world, monkeypatch, broken):
    world = make_world(nodes=1)
    lame = NodePool("lame", ((POOL_LABEL, "lame"),), SHAPE, 1, 2, provider="scale", provider_options=OPTIONS)
    world.settings.settings = settings_of(scaled_pool(min_nodes=1), lame)
    controller = world.controller()
    make = loop.make_provider

    def made(pool, api, namespace):
        provider = make(pool, api, namespace)
        if pool.name == "lame":
            provider.__class__ = Lame
            provider.broken = broken
        return provider

    class Lame(type(make(lame, world.api, "default"))):
        def state(self, facts):
            return self._or_raise("state") or NodePoolState("lame", 0)

        def apply(self, facts, target):
            return self._or_raise("apply") or Outcome()

        def sweep(self, facts, live):
            return self._or_raise("sweep") or Outcome()

        def _or_raise(self, what):
            if self.broken == what:
                raise KeyError("replicas")

    monkeypatch.setattr(loop, "make_provider", made)
    world.ticks(controller, lambda: slots(world) == 4)
    assert controller.tick().is_leader
    if broken != "sweep":
        said = {each.sentence for each in world.memory.decisions if each.about == "lame"}
        assert any("unexpected KeyError: 'replicas'" in each for each in said)
