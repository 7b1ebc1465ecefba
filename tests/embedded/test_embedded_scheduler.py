"""Placement, messages, preemption through the API."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from embedded_helpers import Api, cluster_of, until

from airflow_elastic.embedded import NodePoolConfig
from airflow_elastic.embedded.scheduler.filters import judge_shape, tolerates
from airflow_elastic.embedded.scheduler.infos import Constraints


def node_affinity(*expressions: dict[str, Any], fields: bool = False) -> dict[str, Any]:
    term = {"matchFields" if fields else "matchExpressions": list(expressions)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


LABELS = {"zone": "a", "cpus": "16", "kind": "fixed"}


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        ({}, True),
        ({"nodeSelector": {"zone": "a"}}, True),
        ({"nodeSelector": {"zone": "b"}}, False),
        ({"affinity": node_affinity({"key": "zone", "operator": "In", "values": ["a", "b"]})}, True),
        ({"affinity": node_affinity({"key": "zone", "operator": "NotIn", "values": ["a"]})}, False),
        ({"affinity": node_affinity({"key": "gone", "operator": "NotIn", "values": ["a"]})}, True),
        ({"affinity": node_affinity({"key": "zone", "operator": "Exists"})}, True),
        ({"affinity": node_affinity({"key": "zone", "operator": "DoesNotExist"})}, False),
        ({"affinity": node_affinity({"key": "cpus", "operator": "Gt", "values": ["8"]})}, True),
        ({"affinity": node_affinity({"key": "cpus", "operator": "Lt", "values": ["16"]})}, False),
        ({"affinity": node_affinity({"key": "zone", "operator": "Gt", "values": ["8"]})}, False),
        ({"affinity": node_affinity({"key": "metadata.name", "operator": "In", "values": ["n1"]}, fields=True)}, True),
        ({"affinity": node_affinity({"key": "metadata.name", "operator": "In", "values": ["n2"]}, fields=True)}, False),
        ({"affinity": node_affinity()}, False),
    ],
)
def test_node_selection(spec: dict[str, Any], fits: bool) -> None:
    assert (judge_shape(Constraints.of(spec), "n1", LABELS, []).reason == "") is fits


@pytest.mark.parametrize(
    ("toleration", "covered"),
    [
        ({"key": "burst", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}, True),
        ({"key": "burst", "value": "yes"}, True),
        ({"key": "burst", "value": "no"}, False),
        ({"key": "burst", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "burst", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_tolerations(toleration: dict[str, Any], covered: bool) -> None:
    taint = {"key": "burst", "value": "yes", "effect": "NoSchedule"}
    assert tolerates([toleration], taint) is covered
    verdict = judge_shape(Constraints.of({"tolerations": [toleration]}), "n1", {}, [taint])
    assert (verdict.reason == "") is covered
    if not covered:
        assert verdict.reason == "node(s) had untolerated taint {burst: yes}"


def scheduled_message(api: Api, name: str) -> str:
    pod = api.pod(name)
    found = [c for c in pod.status.conditions or [] if c.type == "PodScheduled"]
    return str(found[0].message or "") if found else ""


def node_of(api: Api, name: str) -> str:
    return str(until(lambda: api.pod(name).spec.node_name))


def test_requests_and_pod_count_limit_a_node() -> None:
    with cluster_of(NodePoolConfig("n", initial_nodes=1, allocatable={"cpu": "2", "pods": "3"})) as cluster:
        api = Api(cluster)
        api.create("a", cpu="1500m", run_seconds=60)
        api.create("b", cpu="600m", run_seconds=60)
        until(lambda: scheduled_message(api, "b"))
        assert scheduled_message(api, "b").startswith("0/1 nodes are available: 1 Insufficient cpu.")
        for name in ("c", "d", "e"):
            api.create(name, run_seconds=60)
        until(lambda: "1 Too many pods" in scheduled_message(api, "e"))
        api.core.delete_namespaced_pod("a", "default", grace_period_seconds=0)
        node_of(api, "b")
        assert api.phase("e") == "Pending"
        events = api.core.list_namespaced_event("default", field_selector="involvedObject.name=b").items
        failed = [event for event in events if event.reason == "FailedScheduling"]
        assert failed[0].type == "Warning"
        assert "Scheduled" in api.reasons("b")
        api.close()


def test_messages_count_every_reason() -> None:
    tainted = NodePoolConfig("t", initial_nodes=2, taints=[{"key": "x", "value": "y", "effect": "NoSchedule"}])
    with cluster_of(tainted, NodePoolConfig("n", initial_nodes=1)) as cluster:
        api = Api(cluster)
        api.create("a", cpu="50", run_seconds=1)
        until(lambda: scheduled_message(api, "a"))
        assert scheduled_message(api, "a") == (
            "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint {x: y}. preemption: "
            "0/3 nodes are available: 1 No preemption victims found for incoming pod, "
            "2 Preemption is not helpful for scheduling."
        )
        api.close()


def test_without_nodes() -> None:
    with cluster_of() as cluster:
        api = Api(cluster)
        api.create("a", run_seconds=1)
        until(lambda: scheduled_message(api, "a") == "no nodes available to schedule pods")
        api.close()


def test_init_containers_and_overhead_count() -> None:
    with cluster_of(NodePoolConfig("n", initial_nodes=1, allocatable={"cpu": "2"})) as cluster:
        api = Api(cluster)
        init = [{"name": "i", "image": "x", "resources": {"requests": {"cpu": "3"}}}]
        api.create("a", run_seconds=0, initContainers=init)
        until(lambda: "Insufficient cpu" in scheduled_message(api, "a"))
        api.create("b", cpu="1500m", run_seconds=0, overhead={"cpu": "1"})
        until(lambda: "Insufficient cpu" in scheduled_message(api, "b"))
        api.close()


def test_preferred_affinity_and_soft_taints_choose() -> None:
    spot = NodePoolConfig("spot", initial_nodes=1, labels={"kind": "spot"})
    soft = NodePoolConfig("soft", initial_nodes=1, taints=[{"key": "s", "effect": "PreferNoSchedule"}])
    plain = NodePoolConfig("plain", initial_nodes=1)
    with cluster_of(spot, soft, plain) as cluster:
        api = Api(cluster)
        preference = {"matchExpressions": [{"key": "kind", "operator": "In", "values": ["spot"]}]}
        rule = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": preference}]}
        for number in range(3):
            api.create(f"p{number}", cpu="1", affinity={"nodeAffinity": rule}, run_seconds=60)
        assert {node_of(api, f"p{n}").split("-")[0] for n in range(3)} == {"spot"}
        for number in range(4):
            api.create(f"q{number}", cpu="500m", run_seconds=60)
        assert "soft" not in {node_of(api, f"q{n}").split("-")[0] for n in range(4)}
        api.close()


@pytest.mark.parametrize(("scoring", "spread"), [("least-allocated", [2, 2]), ("most-allocated", [4])])
def test_scoring(scoring: str, spread: list[int]) -> None:
    with cluster_of(NodePoolConfig("n", initial_nodes=2), scoring=scoring) as cluster:
        api = Api(cluster)
        for number in range(4):
            api.create(f"p{number}", cpu="1", run_seconds=60)
        counts = Counter(node_of(api, f"p{n}") for n in range(4))
        assert sorted(counts.values()) == spread
        api.close()


def test_important_pods_first_then_the_oldest() -> None:
    with cluster_of(NodePoolConfig("n", initial_nodes=1, allocatable={"cpu": "1"})) as cluster:
        api = Api(cluster)
        api.priority_class("high", 10, "Never")
        api.create("running", cpu="1", run_seconds=60)
        node_of(api, "running")
        for name, options in (("first", {}), ("second", {}), ("high", {"priorityClassName": "high"})):
            api.create(name, cpu="1", run_seconds=60, **options)
            until(lambda name=name: scheduled_message(api, name))
        assert "preemptionPolicy=Never" in scheduled_message(api, "high")
        order = []
        for _ in range(3):
            now = next(pod for pod in api.core.list_namespaced_pod("default").items if pod.spec.node_name)
            api.core.delete_namespaced_pod(now.metadata.name, "default", grace_period_seconds=0)
            order.append(
                until(
                    lambda: [p.metadata.name for p in api.core.list_namespaced_pod("default").items if p.spec.node_name]
                )[0]
            )
        assert order == ["high", "first", "second"]
        api.close()


def test_preemption_takes_the_least_and_tells_why() -> None:
    with cluster_of(NodePoolConfig("n", initial_nodes=2, allocatable={"cpu": "2"})) as cluster:
        api = Api(cluster)
        for name, value in (("low", -5), ("mid", 5), ("high", 100)):
            api.priority_class(name, value)
        first, second = api.node_names()
        grace = {"airflow-elastic.io/term-seconds": "0.15"}
        api.create("mid", cpu="2", nodeName=first, priorityClassName="mid", run_seconds=60)
        api.create("low1", cpu="1", nodeName=second, priorityClassName="low", run_seconds=60, annotations=grace)
        api.create("low2", cpu="1", nodeName=second, priorityClassName="low", run_seconds=60)
        for name in ("mid", "low1", "low2"):
            api.until_phase(name, "Running")
        api.create("urgent", cpu="1", priorityClassName="high", run_seconds=60)
        until(lambda: api.pod("urgent").status.nominated_node_name == second or api.pod("urgent").spec.node_name)
        victims = [name for name in ("low1", "low2") if not api.pod(name) or api.pod(name).metadata.deletion_timestamp]
        assert len(victims) == 1
        victim = api.pod(victims[0])
        if victim is not None:
            reasons = {c.type: c.reason for c in victim.status.conditions}
            assert reasons["DisruptionTarget"] == "PreemptionByScheduler"
        assert "Preempted" in api.reasons(victims[0])
        assert node_of(api, "urgent") == second
        assert api.pod("urgent").status.nominated_node_name is None
        assert api.phase("mid") == "Running"
        api.close()


def test_preemption_reserves_the_room_it_made() -> None:
    with cluster_of(NodePoolConfig("n", initial_nodes=1, allocatable={"cpu": "1"})) as cluster:
        api = Api(cluster)
        api.priority_class("high", 100)
        slow = {"airflow-elastic.io/term-seconds": "0.2"}
        api.create("low", cpu="1", run_seconds=60, annotations=slow)
        api.until_phase("low", "Running")
        api.create("thief", cpu="1", run_seconds=60)
        api.create("urgent", cpu="1", priorityClassName="high", run_seconds=60)
        node_of(api, "urgent")
        assert api.phase("thief") == "Pending"
        api.close()


def test_pods_that_never_preempt_wait() -> None:
    with cluster_of(NodePoolConfig("n", initial_nodes=1, allocatable={"cpu": "1"})) as cluster:
        api = Api(cluster)
        api.priority_class("polite", 100, "Never")
        api.create("low", cpu="1", run_seconds=60)
        api.until_phase("low", "Running")
        api.create("waiting", cpu="1", priorityClassName="polite", run_seconds=60)
        until(lambda: scheduled_message(api, "waiting"))
        assert api.phase("low") == "Running"
        api.close()


def test_placeholders_give_way_at_once() -> None:
    with cluster_of(NodePoolConfig("n", initial_nodes=1, allocatable={"cpu": "4"})) as cluster:
        api = Api(cluster)
        api.priority_class("placeholder", -5)
        for number in range(4):
            api.create(
                f"hold{number}",
                cpu="1",
                labels={"airflow-elastic.io/placeholder": "r"},
                priorityClassName="placeholder",
                terminationGracePeriodSeconds=0,
            )
        for number in range(4):
            api.until_phase(f"hold{number}", "Running")
        for number in range(3):
            api.create(f"task{number}", cpu="1", run_seconds=60)
        for number in range(3):
            api.until_phase(f"task{number}", "Running")
        left = [p.metadata.name for p in api.core.list_namespaced_pod("default").items if "hold" in p.metadata.name]
        assert len(left) == 1
        api.close()


def test_pods_that_want_to_be_apart_or_together() -> None:
    with cluster_of(NodePoolConfig("n", initial_nodes=3)) as cluster:
        api = Api(cluster)
        term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
        apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        together = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        for number in range(4):
            api.create(f"a{number}", labels={"app": "x"}, affinity=apart, run_seconds=60)
        until(lambda: scheduled_message(api, "a3"))
        assert len({node_of(api, f"a{n}") for n in range(3)}) == 3
        assert "3 node(s) didn't match pod anti-affinity rules" in scheduled_message(api, "a3")
        for number in range(3):
            api.core.delete_namespaced_pod(f"a{number}", "default", grace_period_seconds=0)
        home = node_of(api, "a3")
        api.create("b", affinity=together, run_seconds=60)
        assert node_of(api, "b") == home
        api.close()


def test_cordoned_nodes_take_nothing(api: Api) -> None:
    (name,) = api.node_names()
    api.core.patch_node(name, {"spec": {"unschedulable": True}})
    node = api.core.read_node(name)
    assert [taint.key for taint in node.spec.taints] == ["node.kubernetes.io/unschedulable"]
    api.create("a", run_seconds=60)
    until(lambda: "1 node(s) were unschedulable" in scheduled_message(api, "a"))
    api.core.patch_node(name, {"spec": {"unschedulable": None}})
    assert node_of(api, "a") == name
    assert api.core.read_node(name).spec.taints is None


def test_waiting_pods_learn_of_new_reasons(api: Api) -> None:
    for number in range(3):
        api.create(f"p{number}", cpu="50", run_seconds=60)
    until(lambda: all("0/1 nodes" in scheduled_message(api, f"p{n}") for n in range(3)))
    api.scale("fixed", 2)
    until(lambda: all("0/2 nodes are available: 2 Insufficient" in scheduled_message(api, f"p{n}") for n in range(3)))


def test_preemption_spares_what_a_budget_protects() -> None:
    with cluster_of(NodePoolConfig("n", initial_nodes=2, allocatable={"cpu": "1"})) as cluster:
        api = Api(cluster)
        api.priority_class("high", 100)
        first, second = api.node_names()
        api.create("guarded", cpu="1", nodeName=first, labels={"app": "g"}, run_seconds=60)
        api.create("free", cpu="1", nodeName=second, run_seconds=60)
        for name in ("guarded", "free"):
            api.until_phase(name, "Running")
        spec = {"selector": {"matchLabels": {"app": "g"}}, "minAvailable": 1}
        api.policy.create_namespaced_pod_disruption_budget("default", {"metadata": {"name": "b"}, "spec": spec})
        api.create("urgent", cpu="1", priorityClassName="high", run_seconds=60)
        assert node_of(api, "urgent") == second
        assert api.phase("guarded") == "Running"
        api.close()


def test_a_nominated_pod_whose_room_went_to_another_looks_again() -> None:
    with cluster_of(NodePoolConfig("n", initial_nodes=1, allocatable={"cpu": "2"})) as cluster:
        api = Api(cluster)
        for name, value in (("mid", 10), ("top", 100)):
            api.priority_class(name, value)
        slow = {"airflow-elastic.io/term-seconds": "0.2"}
        for name in ("low1", "low2"):
            api.create(name, cpu="1", run_seconds=60, annotations=slow)
            api.until_phase(name, "Running")
        api.create("mid", cpu="1", priorityClassName="mid", run_seconds=60)
        until(lambda: api.pod("mid").status.nominated_node_name)
        # More important, and as large: it takes the room that was made for "mid", which then takes the other's.
        api.create("top", cpu="1", priorityClassName="top", run_seconds=60)
        api.until_phase("top", "Running")
        api.until_phase("mid", "Running")
        assert (api.pod("low1"), api.pod("low2")) == (None, None)
        api.close()


def test_the_node_of_a_nominated_pod_goes() -> None:
    with cluster_of(NodePoolConfig("n", initial_nodes=1, allocatable={"cpu": "1"}, boot_seconds_median=1)) as cluster:
        api = Api(cluster)
        api.priority_class("high", 100)
        api.create("low", cpu="1", run_seconds=60, annotations={"airflow-elastic.io/term-seconds": "5"})
        api.until_phase("low", "Running")
        api.create("urgent", cpu="1", priorityClassName="high", run_seconds=60)
        name = until(lambda: api.pod("urgent").status.nominated_node_name)
        cluster.remove_node(name)
        assert node_of(api, "urgent") != name
        api.close()


def test_nobody_is_preempted_where_pod_affinity_forbids_the_node() -> None:
    with cluster_of(NodePoolConfig("n", initial_nodes=1, allocatable={"cpu": "2"})) as cluster:
        api = Api(cluster)
        api.priority_class("high", 100)
        term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
        apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        api.create("other", cpu="1", labels={"app": "x"}, priorityClassName="high", run_seconds=60)
        api.create("low", cpu="1", run_seconds=60)
        for name in ("other", "low"):
            api.until_phase(name, "Running")
        api.create("apart", cpu="1", affinity=apart, priorityClassName="high", run_seconds=60)
        until(lambda: scheduled_message(api, "apart"))
        assert api.phase("low") == "Running"
        assert api.pod("apart").status.nominated_node_name is None
        api.close()
