from __future__ import annotations

import time

from controller_world import POOL_LABEL, SHAPE, run_of, settings_of

from airflow_elastic.model.demand import RunPhase, TaskState
from airflow_elastic.model.labels import ANNOTATION_DAG_ID, ANNOTATION_EXPIRES_AT, LABEL_RESERVATION
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.reservation import reservation_id
from airflow_elastic.model.settings import Mode

POOL = NodePool("elastic", ((POOL_LABEL, "elastic"),), SHAPE, 0, 6, boot_seconds=0.3, boot_seconds_p95=0.6)


def usable(world):
    return sum(node.usable for node in world.views[-1].nodes(world.settings.settings))


def task_pod(name, run, cpu="2", seconds="60"):
    metadata = {
        "name": name,
        "labels": {"airflow-elastic.io/capacity-class": "burst"},
        "annotations": {
            "airflow-elastic.io/dag-id": run.dag_id,
            "airflow-elastic.io/run-id": run.run_id,
            "airflow-elastic.io/task-id": name,
            "airflow-elastic.io/run-seconds": seconds,
        },
    }
    container = {"name": "base", "image": "busybox", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    spec = {"nodeSelector": dict(POOL.selector), "containers": [container], "restartPolicy": "Never"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def test_placeholders_bring_the_nodes_of_a_coming_run_and_carry_owner_and_end(make_world):
    world = make_world(POOL, autoscaled=True)
    controller = world.controller()
    run = run_of(4, starts_at=time.time() + 4.0)
    world.airflow.runs = (run,)
    world.ticks(controller, lambda: usable(world) == 2)
    placeholders = world.placeholders()
    assert len(placeholders) == 2
    owner = reservation_id(run.dag_id, run.run_id, "elastic")
    for pod in placeholders:
        assert pod["metadata"]["labels"][LABEL_RESERVATION] == owner
        assert pod["metadata"]["annotations"][ANNOTATION_DAG_ID] == "etl"
        assert float(pod["metadata"]["annotations"][ANNOTATION_EXPIRES_AT]) > time.time()
        assert pod["spec"]["priority"] == -10


def test_placeholders_shrink_as_tasks_take_the_nodes_and_none_is_left(make_world):
    world = make_world(POOL, autoscaled=True)
    controller = world.controller()
    run = run_of(2, starts_at=time.time() + 1.0)
    world.airflow.runs = (run,)
    world.ticks(controller, lambda: usable(world) == 1 and len(world.placeholders()) == 1)
    active = run_of(2, starts_at=time.time(), phase=RunPhase.ACTIVE, state=TaskState.RUNNING)
    world.airflow.runs = (active,)
    for name in ("t0", "t1"):
        assert world.api.call("POST", "/api/v1/namespaces/default/pods", task_pod(name, active))[0] == 201
    world.ticks(controller, lambda: not world.placeholders())
    for _ in range(5):
        controller.tick()
        world.views[-1].wait(0.1)
    assert not world.placeholders()
    assert len(world.nodes()) == 1

    for name in ("t0", "t1"):
        world.api.call("DELETE", f"/api/v1/namespaces/default/pods/{name}", {"gracePeriodSeconds": 0})
    world.airflow.runs = ()
    world.ticks(controller, lambda: not world.nodes())
    assert not world.placeholders()


def test_a_killed_controller_leaves_placeholders_that_the_next_adopts_or_sweeps(make_world):
    world = make_world(POOL, autoscaled=True, boot=1.0)
    first = world.controller()
    run = run_of(4, starts_at=time.time() + 1.0)
    world.airflow.runs = (run,)
    world.ticks(first, lambda: len(world.placeholders()) == 2)
    names = {pod["metadata"]["name"] for pod in world.placeholders()}
    world.views[-1].stop()

    second = world.controller()
    world.ticks(second, lambda: usable(world) == 2)
    assert {pod["metadata"]["name"] for pod in world.placeholders()} == names
    assert len(world.nodes()) == 2

    world.memory.reservations = ()  # even its memory lost, nothing stays behind
    world.airflow.runs = ()
    third = world.controller()
    world.ticks(third, lambda: not world.nodes() and not world.placeholders(), seconds=12.0)


def test_leaving_mode_manage_takes_the_placeholders_away(make_world):
    world = make_world(POOL, autoscaled=True)
    controller = world.controller()
    world.airflow.runs = (run_of(4, starts_at=time.time() + 1.0),)
    world.ticks(controller, lambda: len(world.placeholders()) == 2)
    world.settings.settings = settings_of(POOL, mode=Mode.OBSERVE)
    world.ticks(controller, lambda: not world.placeholders(), seconds=10.0)
