"""The record from which others compute capacity, billing and waiting."""

from __future__ import annotations

from pathlib import Path

from embedded_helpers import Api, cluster_of, facts, until

from airflow_elastic.embedded import NodePoolConfig


def test_the_life_of_a_pod(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    with cluster_of(NodePoolConfig("n", initial_nodes=1), event_log=log) as cluster:
        api = Api(cluster)
        api.create(
            "a",
            cpu="250m",
            run_seconds=0,
            labels={"airflow-elastic.io/placeholder": "r1"},
            annotations={"note": "x"},
            container={"resources": {"requests": {"cpu": "250m", "memory": "1Gi"}}},
        )
        pod = api.until_phase("a", "Succeeded")
        api.core.delete_namespaced_pod("a", "default")
        uid = pod.metadata.uid
        api.close()
    lines = [line for line in facts(log) if line.get("uid") == uid]
    assert [line["kind"] for line in lines] == [
        "pod_created",
        "pod_bound",
        "pod_running",
        "pod_finished",
        "pod_deleted",
    ]
    created, bound, _, finished, _ = lines
    assert created["requests"]["pods"] == 1
    assert created["placeholder"] is True
    assert created["annotations"]["note"] == "x"
    assert created["namespace"] == "default"
    assert bound["node"] == pod.spec.node_name
    assert (finished["phase"], finished["reason"]) == ("Succeeded", "Completed")
    times = [line["t"] for line in facts(log)]
    assert times == sorted(times)


def test_waiting_is_told_once_and_deletion_with_its_reason(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    with cluster_of(NodePoolConfig("n", initial_nodes=1, max_nodes=3), event_log=log) as cluster:
        api = Api(cluster)
        api.create("wide", cpu="50")
        until(lambda: "FailedScheduling" in api.reasons("wide"))
        api.scale("n", 2)
        until(lambda: len([m for _, m in api.events("wide") if "0/2" in m]))
        api.create("a", run_seconds=60)
        api.until_phase("a", "Running")
        api.core.create_namespaced_pod_eviction("a", "default", {"metadata": {"name": "a"}})
        api.until_phase("a", None)
        api.close()
    assert [line["pod"] for line in facts(log, "pod_unschedulable")] == ["wide"]
    (deleting,) = facts(log, "pod_deleting")
    assert deleting["reason"] == "EvictionByEvictionAPI"
    (scaled,) = facts(log, "pool_scaled")
    assert (scaled["pool"], scaled["from"], scaled["to"]) == ("n", 1, 2)
    assert "python" in scaled["user_agent"]


def test_cordons(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    with cluster_of(NodePoolConfig("n", initial_nodes=1), event_log=log) as cluster:
        api = Api(cluster)
        (name,) = api.node_names()
        for value in (True, None):
            api.core.patch_node(name, {"spec": {"unschedulable": value}})
        api.close()
    assert [line["kind"] for line in facts(log, "node_cordoned", "node_uncordoned")] == [
        "node_cordoned",
        "node_uncordoned",
    ]


def test_a_log_is_appended_to(tmp_path: Path) -> None:
    log = tmp_path / "deep" / "events.jsonl"
    for _ in range(2):
        with cluster_of(NodePoolConfig("n", initial_nodes=1), event_log=log):
            pass
    assert len(facts(log, "node_ready")) == 2
