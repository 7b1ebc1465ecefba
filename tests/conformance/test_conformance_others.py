"""Leases, quotas, events, the scale subresource, reviews, discovery."""

from __future__ import annotations

from typing import Any

from conformance.clusters import Cluster, until
from conformance.pods import Namespace, pod, requests
from conformance.rest import MERGE, Object


def leases(ns: Namespace) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{ns.name}/leases"


def lease(holder: str, **spec: Any) -> Object:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "leader"},
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": 15,
            "renewTime": "2026-01-01T00:00:00.123456Z",
            **spec,
        },
    }


def test_of_two_who_want_a_lease_one_gets_it(ns: Namespace) -> None:
    made = ns.rest.made(leases(ns), lease("first"))
    assert made["spec"]["renewTime"] == "2026-01-01T00:00:00.123456Z"
    assert ns.rest.post(leases(ns), lease("second")).code == 409
    path = f"{leases(ns)}/leader"
    seen = ns.rest.get(path).body
    renewed = {**seen, "spec": {**seen["spec"], "renewTime": "2026-01-01T00:00:10.000000Z"}}
    assert ns.rest.put(path, renewed).code == 200
    taken = {**seen, "spec": {**seen["spec"], "holderIdentity": "second"}}
    answer = ns.rest.put(path, taken)
    assert (answer.code, answer.reason) == (409, "Conflict")
    assert ns.rest.get(path).body["spec"]["holderIdentity"] == "first"


def test_wrong_leases(ns: Namespace) -> None:
    assert ns.rest.post(leases(ns), lease("a", leaseDurationSeconds=0)).code == 422
    assert ns.rest.post(leases(ns), lease("a", renewTime="yesterday")).code == 400


def quota(ns: Namespace, name: str, **hard: str) -> str:
    path = f"{ns.path}/resourcequotas"
    wanted = {key.replace("__", ".").replace("_", "-"): value for key, value in hard.items()}
    ns.rest.made(path, {"metadata": {"name": name}, "spec": {"hard": wanted}})
    until(lambda: ns.rest.get(f"{path}/{name}").body.get("status", {}).get("used"), 20, "the quota's status")
    return f"{path}/{name}"


def test_a_quota_of_pods(ns: Namespace) -> None:
    path = quota(ns, "few", pods="1")
    ns.create(pod("one", schedulerName="nobody"))
    answer = ns.rest.post(ns.pods, pod("two", schedulerName="nobody"))
    assert (answer.code, answer.reason) == (403, "Forbidden")
    assert answer.message == (
        'pods "two" is forbidden: exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1'
    )
    assert ns.rest.get(path).body["status"]["used"] == {"pods": "1"}
    ns.rest.delete(f"{ns.pods}/one", gracePeriodSeconds=0)
    until(lambda: ns.rest.post(ns.pods, pod("two", schedulerName="nobody")).code == 201, 30, "room for another")


def test_a_quota_of_requests_wants_requests(ns: Namespace) -> None:
    quota(ns, "small", requests__cpu="2", requests__memory="1Gi")
    answer = ns.rest.post(ns.pods, pod("none", schedulerName="nobody"))
    assert (answer.code, answer.reason) == (403, "Forbidden")
    assert answer.message.startswith('pods "none" is forbidden: failed quota: small: must specify requests.cpu')
    ns.create(pod("fits", schedulerName="nobody", container=requests(cpu="1500m", memory="100Mi")))
    answer = ns.rest.post(ns.pods, pod("more", schedulerName="nobody", container=requests(cpu="1", memory="100Mi")))
    assert answer.message == (
        'pods "more" is forbidden: exceeded quota: small, requested: requests.cpu=1, used: requests.cpu=1500m, '
        "limited: requests.cpu=2"
    )


def test_finished_pods_use_no_quota(cluster: Cluster, ns: Namespace) -> None:
    quota(ns, "few", pods="1")
    ns.place(cluster.node(), "one", seconds=0.1)
    ns.finished("one")
    until(lambda: ns.rest.post(ns.pods, pod("two", schedulerName="nobody")).code == 201, 30, "room for another")


def test_events_can_be_written(ns: Namespace) -> None:
    about = {"kind": "Pod", "namespace": ns.name, "name": "thing", "apiVersion": "v1"}
    body = {
        "metadata": {"generateName": "thing-"}, "involvedObject": about, "reason": "Tested", "message": "it was",
        "type": "Normal", "source": {"component": "conformance"}, "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z", "count": 1,
    }  # fmt: skip
    made = ns.rest.made(f"{ns.path}/events", body)
    assert made["involvedObject"]["name"] == "thing"
    path = f"{ns.path}/events/{made['metadata']['name']}"
    assert ns.rest.patch(path, {"count": 2}).body["count"] == 2
    shown = ns.rest.get(f"/apis/events.k8s.io/v1/namespaces/{ns.name}/events/{made['metadata']['name']}").body
    assert (shown["note"], shown["regarding"]["name"], shown["deprecatedCount"]) == ("it was", "thing", 2)


def test_an_event_belongs_into_the_namespace_of_its_object(ns: Namespace) -> None:
    about = {"kind": "Pod", "namespace": "default", "name": "thing", "apiVersion": "v1"}
    body = {"metadata": {"generateName": "thing-"}, "involvedObject": about, "reason": "Tested", "message": "no"}
    answer = ns.rest.post(f"{ns.path}/events", body)
    assert (answer.code, answer.reason) == (422, "Invalid")


def test_scale(cluster: Cluster, ns: Namespace) -> None:
    path = cluster.scalable()
    scale = ns.rest.get(f"{path}/scale").body
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["spec"].get("replicas", 0) == 0
    patched = ns.rest.patch(f"{path}/scale", {"spec": {"replicas": 1}}, MERGE)
    assert (patched.code, patched.body["spec"]["replicas"]) == (200, 1)
    assert ns.rest.get(path).body["spec"]["replicas"] == 1
    until(lambda: ns.rest.get(f"{path}/scale").body["status"].get("replicas") == 1, 60, "one node counted")
    current = ns.rest.get(f"{path}/scale").body
    stale = {**current, "metadata": {**current["metadata"], "resourceVersion": "1"}, "spec": {"replicas": 2}}
    answer = ns.rest.put(f"{path}/scale", stale)
    assert (answer.code, answer.reason) == (409, "Conflict")
    # Without a version it is taken as it is: the status may change the version at any moment.
    del current["metadata"]["resourceVersion"]
    assert ns.rest.put(f"{path}/scale", {**current, "spec": {"replicas": 0}}).code == 200
    assert ns.rest.get(path).body["spec"]["replicas"] == 0
    until(lambda: not ns.rest.get(f"{path}/scale").body["status"].get("replicas"), 90, "no node counted")
    assert ns.rest.patch(f"{path}/scale", {"spec": {"replicas": -1}}).code == 422
    assert ns.rest.get(f"{path}-none/scale").code == 404


def test_reviews(ns: Namespace) -> None:
    body = {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"namespace": ns.name, "verb": "create", "resource": "pods"}},
    }  # fmt: skip
    answer = ns.rest.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
    assert answer.code == 201
    assert answer.body["status"]["allowed"] is True
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = ns.rest.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", body)
    assert answer.code == 201
    assert answer.body["status"]["userInfo"]["username"]


def test_discovery(ns: Namespace) -> None:
    assert ns.rest.get("/version").body["gitVersion"].startswith("v1.")
    assert ns.rest.get("/readyz").body == "ok"
    groups = {group["name"]: group for group in ns.rest.get("/apis").body["groups"]}
    for name in ("policy", "scheduling.k8s.io", "coordination.k8s.io", "events.k8s.io", "authorization.k8s.io"):
        assert groups[name]["preferredVersion"]["groupVersion"] == f"{name}/v1"
    resources = {each["name"]: each for each in ns.rest.get("/api/v1").body["resources"]}
    for name in ("pods", "pods/log", "pods/exec", "pods/eviction", "pods/binding", "pods/status", "nodes", "events"):
        assert name in resources
    assert resources["pods"]["namespaced"] is True
    assert {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"} == set(
        resources["pods"]["verbs"]
    )
    assert ns.rest.get("/apis/no.such.group/v1/things").code == 404
    assert ns.rest.get(f"{ns.path}/things").code == 404


def test_methods_that_a_resource_does_not_have(ns: Namespace) -> None:
    answer = ns.rest.put(ns.pods, {})
    assert (answer.code, answer.reason) == (405, "MethodNotAllowed")


def test_tables_and_partial_objects(ns: Namespace) -> None:
    ns.create(pod("one", schedulerName="nobody"))
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    table = ns.rest.call("GET", ns.pods, headers=accept).body
    assert table["kind"] == "Table"
    columns = [each["name"] for each in table["columnDefinitions"]]
    assert columns[:5] == ["Name", "Ready", "Status", "Restarts", "Age"]
    assert table["rows"][0]["cells"][:4] == ["one", "0/1", "Pending", 0] or table["rows"][0]["cells"][3] == "0"
    accept = {"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
    partial = ns.rest.call("GET", ns.pods, headers=accept).body
    assert partial["kind"] == "PartialObjectMetadataList"
    assert set(partial["items"][0]) <= {"metadata", "kind", "apiVersion"}
