from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from airflow_elastic.kubernetes.cluster import NODES, PODS, ClusterView
from airflow_elastic.model.capacity_class import CapacityClass, TaskRule
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.resources import Resources
from airflow_elastic.model.settings import Settings

POOL = NodePool("p", (("pool", "p"),), Resources.parse({"cpu": "4"}))
CORE = CapacityClass("core", ("p",), "core", Resources.of(cpu=1000))
BURST = CapacityClass("burst", ("p",), "burst", Resources.of(cpu=1000), evictable=True)
SETTINGS = Settings(node_pools=(POOL,), classes=(BURST, CORE))


class Clock:
    now = 1_767_225_600.0  # 2026-01-01T00:00:00Z

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def view(clock):
    return ClusterView(monotonic=clock, wall_clock=clock)


def node(name="n1", ready="True", uid="", **spec):
    status = {
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "20"},
        "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    }
    metadata = {"name": name, "uid": uid or name, "labels": {"pool": "p"}, "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"metadata": metadata, "spec": spec, "status": status}


def pod(name, on="n1", labels=None, phase="Running", cpu="1", owner=None, **status):
    metadata = {
        "name": name, "namespace": "d", "uid": name, "labels": labels or {}, "annotations": {},
        "ownerReferences": [{"kind": owner}] if owner else [],
    }  # fmt: skip
    spec = {"nodeName": on, "containers": [{"resources": {"requests": {"cpu": cpu}}}]}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase, **status}}


OURS = {"airflow-elastic.io/capacity-class": "burst"}


def test_foreign_pods_take_room_and_ours_do_not(view):
    view.replace(NODES, [node()])
    view.replace(PODS, [pod("daemon", owner="DaemonSet"), pod("web"), pod("ours", labels=OURS), pod("elsewhere", "x")])
    (found,) = view.nodes(SETTINGS)
    assert found.foreign == Resources.parse({"cpu": "2", "pods": 2})
    assert "d/web" in found.blocks_release
    assert [each.name for each in view.pods(SETTINGS)] == ["ours"]

    view.apply(PODS, "DELETED", pod("web"))
    view.apply(PODS, "MODIFIED", pod("daemon", owner="DaemonSet", phase="Succeeded"))
    (found,) = view.nodes(SETTINGS)
    assert (found.foreign, found.blocks_release) == (Resources(), "")


def test_core_work_blocks_the_release_of_its_node(view):
    view.replace(NODES, [node()])
    view.replace(PODS, [pod("c", labels={"airflow-elastic.io/capacity-class": "core"})])
    assert "core" in view.nodes(SETTINGS)[0].blocks_release
    view.apply(PODS, "MODIFIED", pod("c", labels={"airflow-elastic.io/capacity-class": "core"}, phase="Succeeded"))
    assert view.nodes(SETTINGS)[0].blocks_release == ""


def test_a_rule_makes_plain_operator_pods_ours_as_soon_as_the_file_says_so(view):
    labels = {"kubernetes_pod_operator": "True", "dag_id": "etl", "task_id": "t", "run_id": "r"}
    view.replace(NODES, [node()])
    view.replace(PODS, [pod("kpo", labels=labels)])
    assert view.pods(SETTINGS) == ()
    assert view.nodes(SETTINGS)[0].foreign.get("cpu") == 1000
    ruled = replace(SETTINGS, rules=(TaskRule("burst", dag_id="etl"),))
    assert [each.capacity_class for each in view.pods(ruled)] == ["burst"]
    assert view.nodes(ruled)[0].foreign == Resources()


def test_a_boot_is_seen_once_and_dated_by_when_it_was_seen(view, clock):
    view.replace(NODES, [node("old")])
    view.nodes(SETTINGS)
    view.apply(NODES, "ADDED", node("new", ready="False"))
    assert [each.is_booting for each in view.nodes(SETTINGS)] == [True, False]
    clock.now += 42.0
    view.apply(NODES, "MODIFIED", node("new"))
    new, old = view.nodes(SETTINGS)
    assert new.usable_since == clock.now
    assert old.usable_since == clock.now - 42.0
    assert [(each.name, each.usable_at) for each in view.take_arrivals()] == [("new", clock.now)]
    view.apply(NODES, "MODIFIED", node("new", unschedulable=True))
    assert not view.nodes(SETTINGS)[0].is_booting
    view.apply(NODES, "MODIFIED", node("new"))
    assert view.nodes(SETTINGS)[0].usable
    assert view.take_arrivals() == []


def test_a_node_that_never_becomes_ready_stops_counting_as_coming(view, clock):
    view.replace(NODES, [node("slow", ready="False")])
    assert view.nodes(SETTINGS)[0].is_booting
    clock.now += 901.0
    (found,) = view.nodes(SETTINGS)
    assert not found.is_booting
    assert "901 s" in found.unusable_because


def test_a_node_of_the_same_name_is_another_one(view, clock):
    view.replace(NODES, [node(uid="a")])
    view.nodes(SETTINGS)
    view.apply(NODES, "ADDED", node(uid="b", ready="False"))
    assert view.nodes(SETTINGS)[0].is_booting


def test_a_relist_drops_what_is_gone(view):
    view.replace(NODES, [node("a"), node("b")])
    view.replace(PODS, [pod("x", "a", OURS), pod("y", "b")])
    view.nodes(SETTINGS)
    view.replace(NODES, [node("b")])
    view.replace(PODS, [])
    assert [(each.name, each.foreign) for each in view.nodes(SETTINGS)] == [("b", Resources())]
    assert view.pods(SETTINGS) == ()


def test_a_heartbeat_wakes_nobody_and_a_cordon_does(view):
    view.replace(NODES, [node()])
    view.replace(PODS, [pod("ours", labels=OURS)])
    view.nodes(SETTINGS)
    view.wait(0)
    beat = node()
    beat["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-01-01T00:05:00Z"
    view.apply(NODES, "MODIFIED", beat)
    same = pod("ours", labels=OURS)
    same["metadata"]["resourceVersion"] = "2"
    view.apply(PODS, "MODIFIED", same)
    assert view.wait(0) == ""
    view.apply(PODS, "DELETED", pod("ours", labels=OURS))
    view.apply(NODES, "MODIFIED", node(unschedulable=True))
    assert view.wait(0) == "nodes"
    assert view.wait(0) == ""


def test_waiting_ends_with_the_change(view):
    waker = threading.Timer(0.05, lambda: view.apply(NODES, "ADDED", node()))
    waker.start()
    began = time.monotonic()
    assert view.wait(5.0) == "nodes"
    assert time.monotonic() - began < 4.0
    waker.join()


def test_age_is_that_of_the_older_watch(view, clock):
    assert view.age_seconds() == float("inf")
    view.proof_of_life(NODES)
    assert view.age_seconds() == float("inf")
    clock.now += 3.0
    view.proof_of_life(PODS)
    assert view.age_seconds() == 3.0
    assert view.age_seconds(clock.now + 2.0) == 5.0


def test_a_success_is_told_once(view):
    times = {"startedAt": "2026-01-01T00:00:10Z", "finishedAt": "2026-01-01T00:00:40Z"}
    done = pod("ours", labels=OURS, phase="Succeeded", containerStatuses=[{"state": {"terminated": times}}])
    view.replace(PODS, [pod("ours", labels=OURS)])
    view.pods(SETTINGS)
    view.apply(PODS, "MODIFIED", done)
    done = {**done, "metadata": {**done["metadata"], "deletionTimestamp": "2026-01-01T00:01:00Z"}}
    view.apply(PODS, "MODIFIED", done)
    assert [(each.ended_at - each.started_at, each.pod.capacity_class) for each in view.take_finished()] == [
        (30.0, "burst")
    ]
    assert view.take_finished() == []


def test_what_did_not_change_is_the_same_object(view):
    view.replace(NODES, [node("a"), node("b")])
    first = view.nodes(SETTINGS)
    assert view.nodes(SETTINGS) is first
    view.apply(PODS, "ADDED", pod("web", "a"))
    second = view.nodes(SETTINGS)
    assert second[1] is first[1]
    assert second[0].foreign.get("cpu") == 1000
