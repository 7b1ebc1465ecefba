"""Node pools, boot, removal, loss, taints, eviction."""

from __future__ import annotations

import random
import statistics
from pathlib import Path
from typing import Any

import pytest
from embedded_helpers import Api, cluster_of, facts, until
from kubernetes import client

from airflow_elastic.embedded import NodePoolConfig
from airflow_elastic.embedded.nodes.machine import boot_seconds


def conditions(pod: Any) -> dict[str, str]:
    return {c.type: c.reason for c in pod.status.conditions or []}


def test_boot_times_follow_the_distribution() -> None:
    pool = NodePoolConfig("n", boot_seconds_median=45)
    times = sorted(boot_seconds(pool, rng) for rng in [random.Random(7)] for _ in range(4000))
    assert 42 < statistics.median(times) < 48
    assert 80 < times[int(0.95 * len(times))] < 100
    assert boot_seconds(pool, random.Random(3)) == boot_seconds(pool, random.Random(3))


def test_a_node_registers_before_it_is_ready(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    with cluster_of(NodePoolConfig("n", boot_seconds_median=30), event_log=log, time_speed=200.0) as cluster:
        api = Api(cluster)
        api.scale("n", 1)
        assert api.nodes() == []
        until(lambda: api.pool("n")["status"]["bootingReplicas"] == 1)
        until(api.ready_nodes)
        until(lambda: api.pool("n")["status"]["readyReplicas"] == 1)
        api.close()
    lines = facts(log, "node_launch_requested", "node_registered", "node_ready")
    assert [line["kind"] for line in lines] == ["node_launch_requested", "node_registered", "node_ready"]
    assert len({line["node"] for line in lines}) == 1
    assert lines[0]["allocatable"] == {
        "cpu": 4000, "memory": 16 * 2**30, "ephemeral-storage": 50 * 2**30, "pods": 30,
    }  # fmt: skip
    assert lines[1]["t"] - lines[0]["t"] > 0.02


def test_scale_subresource(api: Api) -> None:
    group = ("embedded.airflow-elastic.io", "v1", "nodepools", "fixed")
    scale = api.custom.get_cluster_custom_object_scale(*group)
    assert (scale["kind"], scale["spec"]["replicas"], scale["status"]["replicas"]) == ("Scale", 1, 1)
    assert scale["status"]["selector"] == "airflow-elastic.io/node-pool=fixed"
    scale["spec"]["replicas"] = 2
    assert api.custom.replace_cluster_custom_object_scale(*group, scale)["spec"]["replicas"] == 2
    until(lambda: len(api.ready_nodes()) == 2)
    scale["spec"]["replicas"] = 3
    with pytest.raises(client.ApiException) as caught:
        api.custom.replace_cluster_custom_object_scale(*group, scale)
    assert caught.value.status == 409


@pytest.mark.parametrize("replicas", [6, -1, "three", 2.5, True])
def test_replicas_beyond_the_limits_are_refused(api: Api, replicas: Any) -> None:
    with pytest.raises(client.ApiException) as caught:
        api.scale("fixed", replicas)
    assert caught.value.status == 422
    assert "spec.replicas: Invalid value" in caught.value.body


def test_only_some_fields_of_a_pool_change(api: Api) -> None:
    group = ("embedded.airflow-elastic.io", "v1", "nodepools", "fixed")
    with pytest.raises(client.ApiException) as caught:
        api.custom.patch_cluster_custom_object(*group, {"spec": {"capacityType": "spot"}})
    assert "spec.capacityType: Forbidden: field is immutable" in caught.value.body.replace("\\", "")
    api.custom.patch_cluster_custom_object(*group, {"spec": {"maxNodes": 9, "minNodes": 1}})
    api.scale("fixed", 7)
    with pytest.raises(client.ApiException):
        api.scale("fixed", 0)


def test_a_cloud_without_machines() -> None:
    with cluster_of(NodePoolConfig("n", stock_out=True)) as cluster:
        api = Api(cluster)
        api.scale("n", 2)

        def short() -> bool:
            (condition,) = api.pool("n")["status"]["conditions"]
            return (condition["type"], condition["status"]) == ("InsufficientCapacity", "True")

        until(short)
        assert api.pool("n")["status"]["replicas"] == 0
        api.custom.patch_cluster_custom_object(
            "embedded.airflow-elastic.io", "v1", "nodepools", "n", {"spec": {"stockOut": False}}
        )
        until(lambda: len(api.ready_nodes()) == 2)
        assert not short()
        api.close()


def test_booting_machines_go_first_the_last_requested_before(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    pool = NodePoolConfig("n", initial_nodes=1, boot_seconds_median=1000)
    with cluster_of(pool, event_log=log, time_speed=1.0) as cluster:
        api = Api(cluster)
        api.scale("n", 3)
        until(lambda: len(facts(log, "node_launch_requested")) == 3)
        api.scale("n", 2)
        until(lambda: facts(log, "node_deleted"))
        requested = [line["node"] for line in facts(log, "node_launch_requested")]
        assert [line["node"] for line in facts(log, "node_deleted")] == [requested[2]]
        api.close()


def test_order_of_removal() -> None:
    with cluster_of(NodePoolConfig("n", initial_nodes=5, remove_seconds=0)) as cluster:
        api = Api(cluster)
        names = api.node_names()
        for number in (0, 1, 3):
            api.create(f"busy{number}", nodeName=names[number], run_seconds=60)
            api.until_phase(f"busy{number}", "Running")
        api.core.patch_node(names[1], {"metadata": {"annotations": {"airflow-elastic.io/release": "r1"}}})
        api.core.patch_node(names[2], {"spec": {"unschedulable": True}})
        gone = []
        for replicas in (4, 3, 2, 1):
            before = set(api.node_names())
            api.scale("n", replicas)
            until(lambda replicas=replicas: len(api.node_names()) == replicas)
            gone += before - set(api.node_names())
        # Released by annotation, cordoned and empty, empty, and last the youngest of the busy ones.
        assert gone == [names[1], names[2], names[4], names[3]]
        api.close()


def test_a_node_that_is_removed_takes_nothing_new_and_its_pods_die(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    with cluster_of(NodePoolConfig("n", initial_nodes=1, remove_seconds=200), event_log=log) as cluster:
        api = Api(cluster)
        api.create("a", run_seconds=60)
        api.until_phase("a", "Running")
        api.scale("n", 0)
        node = until(lambda: next((n for n in api.nodes() if n.spec.unschedulable), None))
        assert "ToBeDeletedByClusterAutoscaler" in [taint.key for taint in node.spec.taints]
        assert api.phase("a") == "Running"
        until(lambda: api.nodes() == [])
        assert api.pod("a") is None
        api.close()
    (finished,) = facts(log, "pod_finished")
    assert (finished["phase"], finished["reason"]) == ("Failed", "DeletionByPodGC")
    kinds = [line["kind"] for line in facts(log) if line["kind"].startswith("node_")]
    assert kinds[-2:] == ["node_cordoned", "node_deleted"]


def test_a_deleted_node_is_replaced(api: Api) -> None:
    (name,) = api.node_names()
    api.create("a", run_seconds=60)
    api.until_phase("a", "Running")
    api.core.delete_node(name)
    api.until_phase("a", None)
    until(lambda: api.ready_nodes() and api.ready_nodes() != [name])


def test_a_machine_that_dies(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    with cluster_of(
        NodePoolConfig("n", initial_nodes=1), event_log=log, lost_node_seconds=150.0, time_speed=1000.0
    ) as cluster:
        api = Api(cluster)
        (name,) = api.node_names()
        api.create("a", command=["sleep", "60"])
        api.until_phase("a", "Running")
        cluster.fail_node(name)
        node = api.core.read_node(name)
        ready = next(c for c in node.status.conditions if c.type == "Ready")
        assert (ready.status, ready.reason) == ("Unknown", "NodeStatusUnknown")
        assert {t.key for t in node.spec.taints} == {"node.kubernetes.io/unreachable"}
        pod = api.pod("a")
        # As in a real cluster the phase stays what the dead kubelet said last.
        assert pod.status.phase == "Running"
        assert next(c.status for c in pod.status.conditions if c.type == "Ready") == "False"
        api.core.delete_namespaced_pod("a", "default")
        assert api.pod("a") is not None, "nobody is there to end it"
        api.until_phase("a", None)
        until(lambda: api.ready_nodes() and api.ready_nodes() != [name])
        api.close()
    (finished,) = facts(log, "pod_finished")
    assert finished["reason"] == "DeletionByPodGC"
    of_node = [line["kind"] for line in facts(log) if line.get("node") == name and line["kind"].startswith("node_")]
    assert of_node == ["node_launch_requested", "node_registered", "node_ready", "node_not_ready", "node_deleted"]


def test_a_machine_that_is_taken_away(api: Api) -> None:
    (name,) = api.node_names()
    api.create("a", run_seconds=60)
    api.until_phase("a", "Running")
    api.cluster.remove_node(name)
    assert name not in api.node_names()
    assert api.pod("a") is None
    with pytest.raises(LookupError, match="has no node"):
        api.cluster.remove_node(name)


def test_no_execute_taints_end_pods(api: Api) -> None:
    (name,) = api.node_names()
    api.create("a", run_seconds=60, annotations={"airflow-elastic.io/term-seconds": "0.1"})
    api.create("b", run_seconds=60, tolerations=[{"key": "maintenance", "operator": "Exists"}])
    limited = {"key": "maintenance", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
    api.create("c", run_seconds=60, tolerations=[limited])
    for pod in ("a", "b", "c"):
        api.until_phase(pod, "Running")
    taint = {"key": "maintenance", "effect": "NoExecute"}
    api.core.patch_node(name, {"spec": {"taints": [taint]}})
    reasons = until(lambda: conditions(api.pod("a")) if api.pod("a").metadata.deletion_timestamp else None)
    assert reasons["DisruptionTarget"] == "DeletionByTaintManager"
    api.until_phase("a", None)
    assert api.phase("c") == "Running"
    api.until_phase("c", None)
    assert api.phase("b") == "Running"


def test_eviction_and_budgets(api: Api) -> None:
    eviction = {"metadata": {"name": "a"}}
    for name in ("a", "b"):
        api.create(name, labels={"app": "x"}, run_seconds=60, annotations={"airflow-elastic.io/term-seconds": "0.1"})
        api.until_phase(name, "Running")
    spec: dict[str, Any] = {"selector": {"matchLabels": {"app": "x"}}, "minAvailable": 2}
    api.policy.create_namespaced_pod_disruption_budget("default", {"metadata": {"name": "keep"}, "spec": spec})
    with pytest.raises(client.ApiException) as caught:
        api.core.create_namespaced_pod_eviction("a", "default", eviction)
    assert caught.value.status == 429
    assert "DisruptionBudget" in caught.value.body
    assert "Retry-After" not in caught.value.headers
    api.policy.patch_namespaced_pod_disruption_budget("keep", "default", {"spec": {"minAvailable": 1}})
    api.core.create_namespaced_pod_eviction("a", "default", eviction)
    assert conditions(api.pod("a"))["DisruptionTarget"] == "EvictionByEvictionAPI"
    with pytest.raises(client.ApiException) as caught:
        api.core.create_namespaced_pod_eviction("b", "default", {"metadata": {"name": "b"}})
    assert caught.value.status == 429
    api.until_phase("a", None)
    assert api.phase("b") == "Running"
    budget = until(
        lambda: (
            api.policy.read_namespaced_pod_disruption_budget("keep", "default").status.expected_pods == 1
            and api.policy.read_namespaced_pod_disruption_budget("keep", "default")
        )
    )
    assert budget.status.disruptions_allowed == 0
