"""Nodes: what they say, and what becomes of the pods of one that is lost or removed."""

from __future__ import annotations

from conformance.clusters import Cluster, until
from conformance.pods import Namespace, condition
from conformance.rest import STRATEGIC, Object


def node(cluster: Cluster, name: str) -> Object:
    found: Object = cluster.rest.get(f"/api/v1/nodes/{name}").body
    return found


def taints(body: Object) -> set[tuple[str, str]]:
    return {(taint["key"], taint["effect"]) for taint in body["spec"].get("taints") or ()}


def test_a_ready_node(cluster: Cluster) -> None:
    for name in (cluster.node(), cluster.process_node):
        body = node(cluster, name)
        ready = condition(body, "Ready")
        assert ready["status"] == "True"
        assert ready["reason"] == "KubeletReady"
        assert ready["lastHeartbeatTime"]
        assert body["status"]["allocatable"].keys() >= {"cpu", "memory", "pods"}
        assert body["status"]["nodeInfo"]["kubeletVersion"].startswith("v1.")
        assert body["metadata"]["labels"]["kubernetes.io/hostname"] == name
        addresses = {each["type"]: each["address"] for each in body["status"]["addresses"]}
        assert addresses["InternalIP"]
        assert addresses["Hostname"] == name


def test_a_node_has_a_lease(cluster: Cluster) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{cluster.node()}"
    body = until(lambda: (answer := cluster.rest.get(path)).code == 200 and answer.body, 20, "the lease")
    assert body["spec"]["holderIdentity"]
    assert body["spec"]["renewTime"].endswith("Z")


def test_labels_and_annotations_can_be_written(cluster: Cluster) -> None:
    path = f"/api/v1/nodes/{cluster.node()}"
    body = {"metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}}}
    changed = cluster.rest.patch(path, body, STRATEGIC).body
    assert changed["metadata"]["labels"]["team"] == "a"
    assert changed["metadata"]["annotations"]["note"] == "b"
    assert cluster.rest.get("/api/v1/nodes", labelSelector="team=a").names == [changed["metadata"]["name"]]


def test_a_lost_node_is_not_ready_then_tainted_then_its_pods_are_deleted(cluster: Cluster, ns: Namespace) -> None:
    name = cluster.node()
    soon = {
        "key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2,
    }  # fmt: skip
    ns.place(name, "soon", tolerations=[soon])
    ns.place(name, "later")
    for each in ("soon", "later"):
        ns.until_phase(each, "Running")
    cluster.lose(name)
    until(lambda: condition(node(cluster, name), "Ready").get("status") == "Unknown", 60, "the node is not Ready")
    ready = condition(node(cluster, name), "Ready")
    assert (ready["reason"], ready["message"]) == ("NodeStatusUnknown", "Kubelet stopped posting node status.")
    expected = {("node.kubernetes.io/unreachable", effect) for effect in ("NoSchedule", "NoExecute")}
    until(lambda: taints(node(cluster, name)) >= expected, 20, "the taints")
    # The pod is only marked: nobody is there who could confirm its end.
    marked = until(lambda: (body := ns.pod("soon"))["metadata"].get("deletionTimestamp") and body, 30, "the deletion")
    assert condition(marked, "DisruptionTarget")["reason"] == "DeletionByTaintManager"
    assert marked["status"]["phase"] == "Running"
    other = ns.pod("later")
    assert "deletionTimestamp" not in other["metadata"]
    assert other["status"]["phase"] == "Running"
    assert condition(other, "Ready")["status"] == "False"
    ns.place(name, "new")
    assert "untolerated taint" in ns.until_condition("new", "PodScheduled", "False")["message"]
    assert "NodeNotReady" in {event["reason"] for event in cluster.events(ns.name, "later")}
    # Without grace the object goes although nobody confirms.
    assert ns.rest.delete(f"{ns.pods}/soon", gracePeriodSeconds=0).code == 200
    assert ns.get("soon").code == 404


def test_pods_of_a_deleted_node_are_collected(cluster: Cluster, ns: Namespace) -> None:
    name = cluster.node()
    ns.place(name, "running")
    ns.until_phase("running", "Running")
    with ns.rest.watch(ns.pods, resourceVersion=ns.rest.get(ns.pods).version) as watch:
        cluster.lose(name)
        assert cluster.rest.delete(f"/api/v1/nodes/{name}").code == 200
        # A node that is gone for 40 s is gone for good; looked at every 20 s.
        gone = watch.until(lambda kind, _: kind == "DELETED", 120)
    target = condition(gone, "DisruptionTarget")
    assert (target["status"], target["reason"]) == ("True", "DeletionByPodGC")
    assert target["message"] == "PodGC: node no longer exists"
    assert gone["status"]["phase"] == "Failed"


def test_a_node_that_comes_back_finds_its_pods(cluster: Cluster, ns: Namespace) -> None:
    name = cluster.node()
    path = f"/api/v1/nodes/{name}"
    ns.place(name, "one")
    ns.until_phase("one", "Running")
    uid = ns.pod("one")["metadata"]["uid"]
    assert cluster.rest.patch(path, {"spec": {"unschedulable": True}}).code == 200
    assert cluster.rest.patch(path, {"spec": {"unschedulable": None}}).code == 200
    assert ns.pod("one")["metadata"]["uid"] == uid
    assert ns.phase("one") == "Running"
