"""The controller dies right after its n-th change of the cluster, for each n; the next one brings all to a good end."""

from __future__ import annotations

import time

import pytest
from controller_world import POOL_LABEL, SHAPE, run_of, scaled_pool

from airflow_elastic.model.demand import RunPhase, TaskState
from airflow_elastic.model.node_pool import NodePool

PLACED = NodePool("elastic", ((POOL_LABEL, "elastic"),), SHAPE, 0, 6, boot_seconds=0.3, boot_seconds_p95=0.6)


class Killed(BaseException):
    pass


class Mortal:
    """The API server, which one process survives only for so many changes."""

    def __init__(self, api, changes):
        self.api = api
        self.left = changes
        self.changes = []

    def call(self, method, path, *arguments, **options):
        answer = self.api.call(method, path, *arguments, **options)
        if method != "GET" and "/leases" not in path:
            self.changes.append((method, path))
            self.left -= 1
            if self.left == 0:
                raise Killed
        return answer


def live_and_die(world, changes):
    """Pre-warm two nodes for a coming run, then let the run vanish; every process dies after its n-th change."""
    deaths = 0

    def process():
        mortal = Mortal(world.api, changes)
        controller = world.controller()
        controller._parts.api = mortal
        return controller, mortal

    controller, mortal = process()
    world.airflow.runs = (run_of(4, starts_at=time.time() + 1.0),)
    for goal in ("warm", "gone"):
        if goal == "gone":
            world.airflow.runs = ()
        end = time.monotonic() + 15.0
        while not (len(nodes(world)) == 2 if goal == "warm" else quiet(world)):
            assert time.monotonic() < end, (goal, deaths, mortal.changes, [n["metadata"] for n in world.nodes()])
            try:
                controller.tick()
                world.views[-1].wait(0.1)
            except Killed:
                deaths += 1
                world.views[-1].stop()
                controller, mortal = process()
            assert len(world.nodes()) <= 2
    return deaths


def nodes(world):
    return [node for node in world.views[-1].nodes(world.settings.settings) if node.usable]


def quiet(world):
    return not world.nodes() and not world.placeholders()


@pytest.mark.parametrize("changes", [1, 2, 3, 4])
def test_scaled_nodes(make_world, changes):
    world = make_world(scaled_pool(boot_seconds=0.1, boot_seconds_p95=0.2))
    assert live_and_die(world, changes) >= 1
    assert world.replicas() == 0


@pytest.mark.parametrize("changes", [1, 2, 3])
def test_placeholders(make_world, changes):
    world = make_world(PLACED, autoscaled=True)
    assert live_and_die(world, changes) >= 1


def test_a_node_whose_release_was_cut_off_serves_again_when_it_is_needed(make_world):
    world = make_world(nodes=2)
    run = run_of(4, starts_at=time.time(), phase=RunPhase.ACTIVE, state=TaskState.SCHEDULED)
    world.airflow.runs = (run,)
    controller = world.controller()
    world.ticks(controller, lambda: world.airflow.pools["burst"].slots == 8 if world.airflow.pools else False)
    controller._parts.api = mortal = Mortal(world.api, 1)
    controller._providers["elastic"]._marks._api = controller._providers["elastic"]._api = mortal
    world.airflow.runs = ()
    with pytest.raises(Killed):
        world.ticks(controller, lambda: False)
    assert mortal.changes[0][1].startswith("/api/v1/nodes/")  # cordoned, the number not lowered
    world.views[-1].stop()

    world.airflow.runs = (run,)
    second = world.controller()
    world.ticks(second, lambda: world.airflow.pools["burst"].slots == 8 and len(nodes(world)) == 2, seconds=15.0)
    assert len(world.nodes()) == 2
    assert world.replicas() == 2
