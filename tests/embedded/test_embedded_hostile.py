"""Whatever is sent, the answer is a Status or an object, never a failure inside, and the cluster goes on."""

from __future__ import annotations

import copy
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from embedded_helpers import Api, cluster_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_elastic.embedded import NodePoolConfig

PATCHES = ("merge-patch", "strategic-merge-patch", "json-patch")
_NODE_TERM = {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}
_POD_TERM = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "kubernetes.io/hostname"}
POD: dict[str, Any] = {
    "metadata": {
        "name": "a",
        "labels": {"a": "b"},
        "annotations": {"airflow-elastic.io/run-seconds": "0"},
        "finalizers": [],
        "ownerReferences": [{"kind": "Pod", "name": "x", "uid": "y", "apiVersion": "v1"}],
    },
    "spec": {
        "restartPolicy": "Never",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_NODE_TERM]},
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": _NODE_TERM}],
            },
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_POD_TERM]},
        },
        "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}],
        "schedulingGates": [],
        "overhead": {"cpu": "1m"},
        "activeDeadlineSeconds": 60,
        "terminationGracePeriodSeconds": 1,
        "volumes": [{"name": "v", "emptyDir": {}}],
        "initContainers": [{"name": "i", "image": "x"}],
        "containers": [
            {
                "name": "base",
                "image": "x",
                "resources": {"requests": {"cpu": "1m"}, "limits": {"memory": "1Gi"}},
                "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            }
        ],
    },
}
NODE = {
    "metadata": {"labels": {"x": "y"}, "annotations": {"airflow-elastic.io/release": "1"}},
    "spec": {"unschedulable": False, "taints": [{"key": "t", "value": "v", "effect": "PreferNoSchedule"}]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"cpu": "4"}},
}


def paths(value: Any, prefix: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield prefix
    if isinstance(value, dict):
        for key, item in value.items():
            yield from paths(item, (*prefix, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from paths(item, (*prefix, index))


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    changed = copy.copy(value)
    changed[path[0]] = replaced(value[path[0]], path[1:], new)
    return changed


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, -1, 2**70, 1.5, "", "x", "1e9", "-1", "NaN", "\ud800", "é" * 300, [], {}, [[]], [None]]),
    st.sampled_from([{"a": None}, {"": ""}, [1], ["a"], {"key": 1}, [{"key": []}], {"$patch": "delete"}, "9" * 40]),
)
FUZZ = settings(
    max_examples=250,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="module")
def shared() -> Iterator[Api]:
    with cluster_of(NodePoolConfig("n", initial_nodes=2)) as cluster:
        api = Api(cluster)
        yield api
        # After everything that was thrown at it, it still runs pods.
        api.create("last", run_seconds=0)
        api.until_phase("last", "Succeeded")
        api.close()


def send(api: Api, method: str, path: str, body: Any, content_type: str = "application/json") -> int:
    request = urllib.request.Request(
        api.cluster.url + path, method=method, data=json.dumps(body).encode(), headers={"content-type": content_type}
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            json.loads(answer.read())
            return int(answer.status)
    except urllib.error.HTTPError as error:
        status = json.loads(error.read())
        assert status["kind"] == "Status"
        assert status["message"]
        return error.code


PODS = "/api/v1/namespaces/default/pods"


@FUZZ
@given(path=st.sampled_from(list(paths(POD))), junk=JUNK)
def test_pods_with_anything_in_them(shared: Api, path: tuple[Any, ...], junk: Any) -> None:
    assert send(shared, "POST", PODS, replaced(POD, path, junk)) in (201, 400, 403, 409, 422)
    send(shared, "DELETE", f"{PODS}/a", {"gracePeriodSeconds": 0})
    send(shared, "PATCH", f"{PODS}/a", {"metadata": {"finalizers": None}}, "application/merge-patch+json")


@FUZZ
@given(path=st.sampled_from(list(paths(NODE))), junk=JUNK, kind=st.sampled_from(PATCHES), status=st.booleans())
def test_node_patches_with_anything_in_them(
    shared: Api, path: tuple[Any, ...], junk: Any, kind: str, status: bool
) -> None:
    with urllib.request.urlopen(f"{shared.cluster.url}/api/v1/nodes", timeout=10) as answer:
        name = json.loads(answer.read())["items"][0]["metadata"]["name"]
    where = f"/api/v1/nodes/{name}" + ("/status" if status else "")
    body = replaced(NODE, path, junk)
    code = send(shared, "PATCH", where, body, f"application/{kind}+json")
    assert code in (200, 400, 409, 415, 422)


@FUZZ
@given(path=st.sampled_from(list(paths(POD))), junk=JUNK, kind=st.sampled_from(PATCHES))
def test_pod_patches_with_anything_in_them(shared: Api, path: tuple[Any, ...], junk: Any, kind: str) -> None:
    send(
        shared,
        "POST",
        PODS,
        {**POD, "metadata": {"name": "p"}, "spec": {**POD["spec"], "schedulingGates": [{"name": "x/y"}]}},
    )
    code = send(shared, "PATCH", f"{PODS}/p", replaced(POD, path, junk), f"application/{kind}+json")
    assert code in (200, 400, 404, 409, 415, 422)
    body = [{"op": "replace", "path": "/" + "/".join(map(str, path)), "value": junk}]
    assert send(shared, "PATCH", f"{PODS}/p", body, "application/json-patch+json") in (200, 400, 404, 409, 422)


@FUZZ
@given(
    resource=st.sampled_from(
        [
            "api/v1/namespaces/default/events",
            "api/v1/namespaces/default/configmaps",
            "api/v1/namespaces/default/secrets",
            "api/v1/namespaces/default/resourcequotas",
            "api/v1/namespaces",
            "apis/events.k8s.io/v1/namespaces/default/events",
            "apis/coordination.k8s.io/v1/namespaces/default/leases",
            "apis/policy/v1/namespaces/default/poddisruptionbudgets",
            "apis/scheduling.k8s.io/v1/priorityclasses",
            "api/v1/namespaces/default/pods/a/eviction",
            "api/v1/namespaces/default/pods/a/binding",
        ]
    ),
    field=st.sampled_from(["spec", "data", "stringData", "metadata", "involvedObject", "value", "hard", "target"]),
    junk=JUNK,
)
def test_other_objects_with_anything_in_them(shared: Api, resource: str, field: str, junk: Any) -> None:
    body = {"metadata": {"name": "zz"}, field: junk}
    assert send(shared, "POST", f"/{resource}", body) in (201, 400, 403, 404, 409, 422)
    if resource.endswith("quotas") or resource.endswith("budgets"):
        send(shared, "DELETE", f"/{resource}/zz", {})


@pytest.mark.parametrize(
    "query",
    [
        "labelSelector=%00", "labelSelector=a%20in%20(", "fieldSelector==", "limit=-1", "limit=1e400", "continue=%ff",
        "resourceVersion=abc", "resourceVersion=-5", "watch=true&timeoutSeconds=x", "watch=true&resourceVersion=abc",
        "labelSelector=" + "a" * 5000, "timeoutSeconds=nan",
    ],
)  # fmt: skip
def test_queries_with_anything_in_them(shared: Api, query: str) -> None:
    code, first_line = 200, b""
    try:
        with urllib.request.urlopen(f"{shared.cluster.url}{PODS}?{query}", timeout=10) as answer:
            first_line = b"" if "watch" in query else answer.readline()
    except urllib.error.HTTPError as error:
        code, first_line = error.code, error.read()
    assert code in (200, 400, 410, 504)
    assert code == 200 or json.loads(first_line)["kind"] == "Status"
