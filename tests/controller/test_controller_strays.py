"""What was taken out of the capacity file leaves nothing behind; what others own is left alone."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from controller_world import POOL_LABEL, SHAPE, run_of, scaled_pool, settings_of, wait_until

from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.settings import Mode

MERGE = "application/merge-patch+json"
HELD = NodePool("elastic", ((POOL_LABEL, "elastic"),), SHAPE, 0, 6, boot_seconds=0.3, boot_seconds_p95=0.6)
OTHER = NodePool("other", ((POOL_LABEL, "other"),), SHAPE, 0, 6)
DIFFERENT = {
    "pool removed": OTHER,
    "provider none": replace(HELD, provider="none"),
    "another selector": replace(HELD, selector=((POOL_LABEL, "other"),)),
    "another name": replace(HELD, name="renamed"),
}


@pytest.fixture(autouse=True)
def look_often(monkeypatch):
    monkeypatch.setattr("airflow_elastic.controller.loop._STRAYS_SECONDS", 0.1)


def warm(world, controller):
    world.airflow.runs = (run_of(4, starts_at=time.time() + 1.0),)
    world.ticks(controller, lambda: sum(node.usable for node in world.views[-1].nodes(world.settings.settings)) == 2)
    assert len(world.placeholders()) == 2


@pytest.mark.parametrize("pool", DIFFERENT.values(), ids=DIFFERENT.keys())
@pytest.mark.parametrize("restarted", [False, True], ids=["running", "restarted"])
def test_placeholders_of_a_pool_that_is_not_served_any_more_go(make_world, pool, restarted):
    world = make_world(HELD, autoscaled=True)
    controller = world.controller()
    warm(world, controller)
    world.settings.settings = settings_of(pool)
    if restarted:
        world.views[-1].stop()
        controller = world.controller()
    world.airflow.runs = ()
    world.ticks(controller, lambda: not world.placeholders(), seconds=15.0)
    wait_until(lambda: not world.nodes(), seconds=10.0)


def test_placeholders_of_another_installation_stay_until_they_expire(make_world):
    world = make_world(HELD, autoscaled=True)
    marks = {"airflow-elastic.io/expires-at": f"{time.time() + 1.5:.3f}"}
    labels = {"airflow-elastic.io/placeholder": "true", "airflow-elastic.io/reservation": "0123456789abcdef"}
    container = {"name": "placeholder", "image": "pause", "resources": {"requests": {"cpu": "3"}}}
    spec = {"nodeSelector": {POOL_LABEL: "theirs"}, "containers": [container]}
    pod = {"metadata": {"name": "theirs", "labels": labels, "annotations": marks}, "spec": spec}
    assert world.api.call("POST", "/api/v1/namespaces/default/pods", pod)[0] == 201
    controller = world.controller()
    seen = 0
    while time.time() < float(marks["airflow-elastic.io/expires-at"]) - 0.3:
        controller.tick()
        seen += len(world.placeholders())
        world.views[-1].wait(0.1)
    assert seen
    world.ticks(controller, lambda: not world.placeholders())


@pytest.mark.parametrize("restarted", [False, True], ids=["running", "restarted"])
def test_a_node_whose_release_was_cut_off_is_opened_again_though_its_pool_is_gone(make_world, restarted):
    world = make_world(scaled_pool(min_nodes=1), nodes=1)
    controller = world.controller()
    controller.tick()
    name = world.nodes()[0]["metadata"]["name"]
    age = 3600 if restarted else 60
    marks = {"airflow-elastic.io/release": f"{time.time() - age:.3f}", "airflow-elastic.io/cordoned": "true"}
    world.settings.settings = settings_of(replace(OTHER, provider="none"))
    if restarted:
        world.views[-1].stop()
        controller = world.controller()
    body = {"metadata": {"annotations": marks}, "spec": {"unschedulable": True}}
    world.api.call("PATCH", f"/api/v1/nodes/{name}", body, content_type=MERGE)

    def is_open():
        node = world.nodes()[0]
        return not node["spec"].get("unschedulable") and not set(marks) & set(node["metadata"]["annotations"])

    world.ticks(controller, is_open)


def test_a_fresh_mark_and_a_cordon_of_others_on_undeclared_nodes_are_left_alone(make_world):
    world = make_world(nodes=2)
    first, second = (node["metadata"]["name"] for node in world.nodes())
    mark = {"airflow-elastic.io/release": f"{time.time() - 60:.3f}", "airflow-elastic.io/cordoned": "true"}
    for name, marks in ((first, mark), (second, {})):
        body = {"metadata": {"annotations": marks}, "spec": {"unschedulable": True}}
        world.api.call("PATCH", f"/api/v1/nodes/{name}", body, content_type=MERGE)
    world.settings.settings = settings_of(OTHER)
    controller = world.controller()
    end = time.monotonic() + 1.0
    while time.monotonic() < end:
        controller.tick()
        world.views[-1].wait(0.1)
    assert all(node["spec"]["unschedulable"] for node in world.nodes())


def test_in_mode_observe_from_the_start_nothing_is_touched(make_world):
    world = make_world(HELD, autoscaled=True)
    controller = world.controller()
    warm(world, controller)
    world.views[-1].stop()
    world.settings.settings = settings_of(OTHER, mode=Mode.OBSERVE)
    second = world.controller()
    end = time.monotonic() + 0.8
    while time.monotonic() < end:
        second.tick()
        world.views[-1].wait(0.1)
    assert len(world.placeholders()) == 2
