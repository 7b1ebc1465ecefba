"""Where pods go, and what is said when they go nowhere."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.clusters import OWN_LABEL, Cluster, until
from conformance.pods import Namespace, condition, pod, requests
from conformance.rest import STRATEGIC, Object


def unschedulable(ns: Namespace, name: str) -> str:
    """Wait until the scheduler has said that a pod fits nowhere; return why."""
    found = ns.until_condition(name, "PodScheduled", "False")
    assert found["reason"] == "Unschedulable"
    assert ns.pod(name)["status"]["phase"] == "Pending"
    return str(found["message"])


def required(*expressions: Object, fields: bool = False) -> Object:
    """Return required node affinity."""
    kind = "matchFields" if fields else "matchExpressions"
    terms = {"nodeSelectorTerms": [{kind: list(expressions)}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def on(*nodes: str) -> Object:
    """Return the expression that only some nodes of a test match."""
    return {"key": OWN_LABEL, "operator": "In", "values": list(nodes)}


def bound(ns: Namespace, name: str) -> str:
    """Wait for a pod's node."""
    return str(until(lambda: ns.pod(name)["spec"].get("nodeName"), 20, f"{name} is bound"))


def test_binding_says_so(cluster: Cluster, ns: Namespace) -> None:
    node = cluster.node()
    ns.place(node, "one")
    running = ns.until_phase("one", "Running")
    assert running["spec"]["nodeName"] == node
    assert condition(running, "PodScheduled")["status"] == "True"
    event = next(each for each in cluster.events(ns.name, "one") if each["reason"] == "Scheduled")
    assert event["message"] == f"Successfully assigned {ns.name}/one to {node}"
    assert event["type"] == "Normal"


@pytest.mark.parametrize(
    ("shape", "resource", "amount", "more", "message"),
    [
        ("plain", "cpu", "3", "1100m", "Insufficient cpu"),
        ("plain", "memory", "7Gi", "1100Mi", "Insufficient memory"),
        ("device", "example.com/device", "1", "2", "Insufficient example.com/device"),
        ("plain", "ephemeral-storage", "15Gi", "6Gi", "Insufficient ephemeral-storage"),
    ],
)
def test_room_of_each_resource(
    cluster: Cluster, ns: Namespace, shape: str, resource: str, amount: str, more: str, message: str
) -> None:
    node = cluster.node(shape)

    def part(quantity: str) -> Object:
        both = {resource: quantity}
        # Extended resources want equal limits.
        return {"resources": {"requests": both, **({"limits": both} if "/" in resource else {})}}

    ns.place(node, "first", container=part(amount))
    ns.until_phase("first", "Running")
    ns.place(node, "second", container=part(more))
    assert message in unschedulable(ns, "second")
    ns.rest.delete(f"{ns.pods}/first", gracePeriodSeconds=0)
    ns.until_phase("second", "Running")


def test_room_for_pods(cluster: Cluster, ns: Namespace) -> None:
    node = cluster.node("few-pods")
    for name in ("one", "two"):
        ns.place(node, name)
        ns.until_phase(name, "Running")
    ns.place(node, "three")
    assert "Too many pods" in unschedulable(ns, "three")


def test_finished_pods_take_no_room(cluster: Cluster, ns: Namespace) -> None:
    node = cluster.node()
    ns.place(node, "first", seconds=0.3, container=requests(cpu="4"))
    ns.place(node, "second", container=requests(cpu="4"))
    ns.until_phase("second", "Running")
    assert ns.phase("first") == "Succeeded"


def test_init_containers_count_by_their_largest_and_sidecars_add_up(cluster: Cluster, ns: Namespace) -> None:
    node = cluster.node()
    image = {"image": "localhost/busybox:1"}
    init = [{"name": "a", **image, **requests(cpu="3")}, {"name": "b", **image, **requests(cpu="2")}]
    ns.place(node, "largest", initContainers=init, container=requests(cpu="1"))
    ns.until_phase("largest", "Running")
    ns.place(node, "fits", container=requests(cpu="1"))
    ns.until_phase("fits", "Running")
    ns.place(node, "not", container=requests(cpu="1"))
    assert "Insufficient cpu" in unschedulable(ns, "not")
    for name in ("largest", "fits", "not"):
        ns.rest.delete(f"{ns.pods}/{name}", gracePeriodSeconds=0)
    sidecar = [{"name": "side", "restartPolicy": "Always", **image, **requests(cpu="2")}]
    ns.place(node, "sum", initContainers=sidecar, container=requests(cpu="2500m"))
    assert "Insufficient cpu" in unschedulable(ns, "sum")


def test_limits_without_requests_are_requests(cluster: Cluster, ns: Namespace) -> None:
    node = cluster.node()
    made = ns.place(node, "one", container={"resources": {"limits": {"cpu": "3"}}})
    assert made["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "3"}
    ns.until_phase("one", "Running")
    ns.place(node, "two", container=requests(cpu="2"))
    assert "Insufficient cpu" in unschedulable(ns, "two")


def test_node_selectors(cluster: Cluster, ns: Namespace) -> None:
    node = cluster.node(disk="fast")
    ns.create(pod("fits", seconds=600, nodeSelector={OWN_LABEL: node, "disk": "fast"}))
    ns.until_phase("fits", "Running")
    ns.create(pod("not", seconds=600, nodeSelector={OWN_LABEL: node, "disk": "slow"}))
    assert "didn't match Pod's node affinity/selector" in unschedulable(ns, "not")
    cluster.rest.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {"disk": "slow"}}})
    ns.until_phase("not", "Running")
    # Ignored during execution: who runs already stays.
    assert ns.phase("fits") == "Running"


@pytest.mark.parametrize(
    ("operator", "values", "wanted"),
    [
        ("In", ["a", "b"], "a"),
        ("NotIn", ["a"], "none"),
        ("Exists", [], "a"),
        ("DoesNotExist", [], "none"),
        ("Gt", ["10"], "a"),
        ("Lt", ["20"], "a"),
    ],
)
def test_required_node_affinity(cluster: Cluster, ns: Namespace, operator: str, values: list[str], wanted: str) -> None:
    nodes = {"a": cluster.node(kind="a", number="16"), "none": cluster.node()}
    key = "number" if operator in ("Gt", "Lt") else "kind"
    expression = {"key": key, "operator": operator, **({"values": values} if values else {})}
    affinity = required(on(*nodes.values()), expression)
    for number in range(3):
        ns.create(pod(f"p{number}", seconds=600, affinity=affinity))
    assert {bound(ns, f"p{number}") for number in range(3)} == {nodes[wanted]}


def test_terms_are_alternatives_and_the_selector_holds_as_well(cluster: Cluster, ns: Namespace) -> None:
    first, second = cluster.node(kind="a"), cluster.node(kind="b")
    terms = [
        {"matchExpressions": [{"key": "kind", "operator": "In", "values": ["a"]}]},
        {"matchExpressions": [{"key": "kind", "operator": "In", "values": ["b"]}]},
    ]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    ns.create(pod("one", seconds=600, affinity=affinity, nodeSelector={OWN_LABEL: second}))
    assert bound(ns, "one") == second
    assert first != second


def test_node_affinity_by_name(cluster: Cluster, ns: Namespace) -> None:
    node = cluster.node()
    cluster.node()
    affinity = required({"key": "metadata.name", "operator": "In", "values": [node]}, fields=True)
    ns.create(pod("one", seconds=600, affinity=affinity))
    assert bound(ns, "one") == node


def test_preferred_node_affinity_by_weight(cluster: Cluster, ns: Namespace) -> None:
    nodes = [cluster.node(kind="a"), cluster.node(kind="b"), cluster.node(kind="c")]
    preferred = [
        {"weight": weight, "preference": {"matchExpressions": [{"key": "kind", "operator": "In", "values": [kind]}]}}
        for kind, weight in (("a", 10), ("b", 100))
    ]
    affinity = required(on(*nodes))
    affinity["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    ns.create(pod("first", seconds=600, affinity=affinity, container=requests(cpu="3")))
    assert bound(ns, "first") == nodes[1]
    ns.create(pod("second", seconds=600, affinity=affinity, container=requests(cpu="3")))
    assert bound(ns, "second") == nodes[0]
    ns.create(pod("third", seconds=600, affinity=affinity, container=requests(cpu="3")))
    assert bound(ns, "third") == nodes[2]


def test_pods_spread_over_equal_nodes(cluster: Cluster, ns: Namespace) -> None:
    nodes = {cluster.node(), cluster.node()}
    used = []
    for name in ("one", "two"):
        ns.create(pod(name, seconds=600, affinity=required(on(*nodes)), container=requests(cpu="1", memory="1Gi")))
        used.append(bound(ns, name))
    assert set(used) == nodes


def pod_affinity(kind: str, label: str, topology: str = "kubernetes.io/hostname") -> Object:
    term = {"labelSelector": {"matchLabels": {"app": label}}, "topologyKey": topology}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_pod_affinity(cluster: Cluster, ns: Namespace) -> None:
    nodes = [cluster.node(), cluster.node()]
    ns.place(nodes[0], "anchor", labels={"app": "anchor"})
    ns.until_phase("anchor", "Running")
    together = {**required(on(*nodes)), **pod_affinity("podAffinity", "anchor")}
    for number in range(3):
        ns.create(pod(f"near{number}", seconds=600, affinity=together))
        assert bound(ns, f"near{number}") == nodes[0]
    ns.place(nodes[1], "far", affinity=pod_affinity("podAffinity", "anchor"))
    assert "didn't match pod affinity rules" in unschedulable(ns, "far")


def test_pod_anti_affinity_both_ways(cluster: Cluster, ns: Namespace) -> None:
    nodes = [cluster.node(), cluster.node()]
    apart = {**required(on(*nodes)), **pod_affinity("podAntiAffinity", "single")}
    used = []
    for number in range(2):
        ns.create(pod(f"s{number}", seconds=600, labels={"app": "single"}, affinity=apart))
        used.append(bound(ns, f"s{number}"))
    assert sorted(used) == sorted(nodes)
    ns.create(pod("third", seconds=600, labels={"app": "single"}, affinity=apart))
    assert "didn't match pod anti-affinity rules" in unschedulable(ns, "third")
    # Those who are there refuse it although it asks for nothing itself.
    ns.place(nodes[0], "plain", labels={"app": "single"})
    assert "didn't satisfy existing pods anti-affinity rules" in unschedulable(ns, "plain")


def test_taints_keep_pods_away(cluster: Cluster, ns: Namespace) -> None:
    node = cluster.node()
    taint = {"key": "example.com/only", "value": "batch", "effect": "NoSchedule"}
    assert cluster.rest.patch(f"/api/v1/nodes/{node}", {"spec": {"taints": [taint]}}).code == 200
    ns.place(node, "not")
    assert "untolerated taint" in unschedulable(ns, "not")
    tolerations: dict[str, Object] = {
        "equal": {"key": "example.com/only", "operator": "Equal", "value": "batch", "effect": "NoSchedule"},
        "exists": {"key": "example.com/only", "operator": "Exists"},
        "all": {"operator": "Exists"},
        "any-effect": {"key": "example.com/only", "value": "batch"},
    }
    for name, toleration in tolerations.items():
        ns.place(node, name, tolerations=[toleration])
        ns.until_phase(name, "Running")
    for name, toleration in {
        "other-value": {"key": "example.com/only", "operator": "Equal", "value": "other"},
        "other-effect": {"key": "example.com/only", "operator": "Exists", "effect": "NoExecute"},
    }.items():
        ns.place(node, name, tolerations=[toleration])
        assert "untolerated taint" in unschedulable(ns, name)
    cluster.rest.patch(f"/api/v1/nodes/{node}", {"spec": {"taints": None}})
    ns.until_phase("not", "Running")


def test_soft_taints_are_avoided_while_another_node_fits(cluster: Cluster, ns: Namespace) -> None:
    soft, plain = cluster.node(), cluster.node()
    taint = {"key": "example.com/soft", "effect": "PreferNoSchedule"}
    cluster.rest.patch(f"/api/v1/nodes/{soft}", {"spec": {"taints": [taint]}})
    both = required(on(soft, plain))
    ns.create(pod("first", seconds=600, affinity=both, container=requests(cpu="3")))
    assert bound(ns, "first") == plain
    ns.create(pod("second", seconds=600, affinity=both, container=requests(cpu="3")))
    assert bound(ns, "second") == soft


def test_a_no_execute_taint_ends_pods_at_once_or_after_what_they_tolerate(cluster: Cluster, ns: Namespace) -> None:
    node = cluster.node()
    out = {"key": "example.com/out", "operator": "Exists"}
    ns.place(node, "none")
    answer = ns.rest.post(ns.pods, pod("wrong", tolerations=[{**out, "tolerationSeconds": 3}]))
    assert (answer.code, answer.reason) == (422, "Invalid")
    assert "effect must be 'NoExecute' when `tolerationSeconds` is set" in answer.message
    ns.place(node, "short", tolerations=[{**out, "tolerationSeconds": 3, "effect": "NoExecute"}])
    ns.place(node, "ever", tolerations=[out])
    for name in ("none", "short", "ever"):
        ns.until_phase(name, "Running")
    start = ns.rest.get(ns.pods).version
    with ns.rest.watch(ns.pods, resourceVersion=start) as watch:
        taint = {"key": "example.com/out", "effect": "NoExecute"}
        cluster.rest.patch(f"/api/v1/nodes/{node}", {"spec": {"taints": [taint]}}, STRATEGIC)
        first = watch.until(lambda kind, _: kind == "DELETED")
        assert first["metadata"]["name"] == "none"
        assert condition(first, "DisruptionTarget")["reason"] == "DeletionByTaintManager"
        assert ns.phase("short") == "Running"
        second = watch.until(lambda kind, _: kind == "DELETED")
        assert second["metadata"]["name"] == "short"
    assert ns.phase("ever") == "Running"
    assert "TaintManagerEviction" in ns.reasons("none")


def test_default_tolerations_of_node_loss(ns: Namespace) -> None:
    made = ns.create(pod("one", schedulerName="nobody"))
    keys = {each["key"]: each for each in made["spec"]["tolerations"]}
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        assert keys[key] == {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}


def test_scheduling_gates(cluster: Cluster, ns: Namespace) -> None:
    node = cluster.node(zone="a")
    gates = [{"name": "example.com/first"}, {"name": "example.com/second"}]
    made = ns.place(node, "gated", schedulingGates=gates)
    assert made["status"]["phase"] == "Pending"
    found = ns.until_condition("gated", "PodScheduled", "False")
    assert found["reason"] == "SchedulingGated"
    assert "FailedScheduling" not in ns.reasons("gated")
    path = f"{ns.pods}/gated"
    more = {"spec": {"schedulingGates": [*gates, {"name": "example.com/third"}]}}
    assert ns.rest.patch(path, more).code == 422
    # While gated, the choice of nodes may be narrowed.
    assert ns.rest.patch(path, {"spec": {"nodeSelector": {OWN_LABEL: node, "zone": "a"}}}).code == 200
    assert (
        ns.rest.patch(path, {"spec": {"nodeSelector": {OWN_LABEL: node}}}, "application/merge-patch+json").code == 200
    )
    remove_one = [{"op": "remove", "path": "/spec/schedulingGates/0"}]
    assert ns.rest.patch(path, remove_one, "application/json-patch+json").code == 200
    assert not ns.pod("gated")["spec"].get("nodeName")
    assert ns.rest.patch(path, {"spec": {"schedulingGates": None}}).code == 200
    ns.until_phase("gated", "Running")


def test_a_gate_cannot_be_added_later(ns: Namespace) -> None:
    ns.create(pod("one", schedulerName="nobody"))
    answer = ns.rest.patch(f"{ns.pods}/one", {"spec": {"schedulingGates": [{"name": "example.com/late"}]}})
    assert answer.code == 422


def test_binding_by_hand(cluster: Cluster, ns: Namespace) -> None:
    node = cluster.node()
    ns.create(pod("one", seconds=600, schedulerName="mine"))
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "one"}, "target": target}
    answer = ns.rest.post(f"{ns.pods}/one/binding", body)
    assert (answer.code, answer.body["status"]) == (201, "Success")
    assert ns.until_phase("one", "Running")["spec"]["nodeName"] == node
    again = ns.rest.post(f"{ns.pods}/one/binding", body)
    assert (again.code, again.reason) == (409, "Conflict")


def test_a_node_named_in_the_spec_skips_the_scheduler(cluster: Cluster, ns: Namespace) -> None:
    node = cluster.node()
    taint = {"key": "example.com/no", "effect": "NoSchedule"}
    cluster.rest.patch(f"/api/v1/nodes/{node}", {"spec": {"taints": [taint]}})
    ns.create(pod("one", seconds=600, nodeName=node))
    ns.until_phase("one", "Running")
    assert "Scheduled" not in ns.reasons("one")


def test_a_kubelet_rejects_what_does_not_fit(cluster: Cluster, ns: Namespace) -> None:
    ns.create(pod("big", nodeName=cluster.process_node, container=requests(cpu="500")))
    failed = ns.finished("big")
    assert failed["status"]["phase"] == "Failed"
    assert failed["status"]["reason"] == "OutOfcpu"
    assert not failed["status"].get("containerStatuses")
    assert failed["status"]["message"].startswith(
        "Pod was rejected: Node didn't have enough resource: cpu, requested: 500000, used: "
    )


def test_a_kubelet_rejects_what_its_node_does_not_match(cluster: Cluster, ns: Namespace) -> None:
    ns.create(pod("not", nodeName=cluster.process_node, nodeSelector={"no": "where"}))
    failed = ns.finished("not")
    assert (failed["status"]["phase"], failed["status"]["reason"]) == ("Failed", "NodeAffinity")
    assert not failed["status"].get("containerStatuses")


def test_cordon(cluster: Cluster, ns: Namespace) -> None:
    node = cluster.node()
    ns.place(node, "before")
    ns.until_phase("before", "Running")
    path = f"/api/v1/nodes/{node}"
    assert cluster.rest.patch(path, {"spec": {"unschedulable": True}}, STRATEGIC).code == 200
    until(lambda: "node.kubernetes.io/unschedulable" in _taints(cluster, node), 10, "the taint of a cordon")
    ns.place(node, "after")
    assert unschedulable(ns, "after")
    assert ns.phase("before") == "Running"
    assert cluster.rest.patch(path, {"spec": {"unschedulable": None}}, STRATEGIC).code == 200
    ns.until_phase("after", "Running")
    until(lambda: not _taints(cluster, node), 10, "no taint")


def _taints(cluster: Cluster, node: str) -> list[str]:
    return [taint["key"] for taint in cluster.rest.get(f"/api/v1/nodes/{node}").body["spec"].get("taints") or ()]


def test_a_node_without_room_is_said_for_each_reason(cluster: Cluster, ns: Namespace) -> None:
    node = cluster.node()
    ns.place(node, "big", container=requests(cpu="5", memory="100Gi"))
    message = unschedulable(ns, "big")
    assert message.startswith("0/")
    assert "nodes are available: " in message
    assert "1 Insufficient cpu" in message
    assert "1 Insufficient memory" in message
    assert "preemption: " in message
    events: list[Any] = until(lambda: cluster.events(ns.name, "big"), 20, "the event")
    assert events[0]["reason"] == "FailedScheduling"
    assert events[0]["type"] == "Warning"


def test_a_new_node_is_used_by_who_waits(cluster: Cluster, ns: Namespace) -> None:
    ns.create(
        pod("waiting", seconds=600, affinity=required({"key": "wanted-by", "operator": "In", "values": [ns.name]}))
    )
    unschedulable(ns, "waiting")
    node = cluster.node(**{"wanted-by": ns.name})
    assert ns.until_phase("waiting", "Running")["spec"]["nodeName"] == node
