"""The four kinds of patches."""

from __future__ import annotations

import pytest

from conformance.clusters import Cluster
from conformance.pods import Namespace, pod
from conformance.rest import APPLY, JSON_PATCH, MERGE, STRATEGIC, Object


@pytest.fixture
def path(ns: Namespace) -> str:
    """A pod that nobody touches."""
    ns.create(pod("one", schedulerName="nobody", labels={"a": "1", "b": "2"}, annotations={"note": "x"}))
    return f"{ns.pods}/one"


def test_merge_patch_removes_by_null_and_replaces_lists(ns: Namespace, path: str) -> None:
    body = {"metadata": {"labels": {"a": None, "c": "3"}}}
    changed = ns.rest.patch(path, body, MERGE).body
    assert changed["metadata"]["labels"] == {"b": "2", "c": "3"}
    assert changed["metadata"]["annotations"] == {"note": "x"}


def test_strategic_patch_merges_lists_by_their_key(cluster: Cluster, ns: Namespace, path: str) -> None:
    body = {"spec": {"containers": [{"name": "base", "image": "localhost/other:2"}]}}
    changed = ns.rest.patch(path, body, STRATEGIC).body
    [container] = changed["spec"]["containers"]
    assert container["image"] == "localhost/other:2"
    assert container["terminationMessagePath"] == "/dev/termination-log"


def test_strategic_patch_of_conditions_keeps_the_others(ns: Namespace, path: str) -> None:
    for kind in ("example.com/One", "example.com/Two"):
        body = {"status": {"conditions": [{"type": kind, "status": "True"}]}}
        assert ns.rest.patch(f"{path}/status", body, STRATEGIC).code == 200
    body = {"status": {"conditions": [{"type": "example.com/One", "status": "False"}]}}
    changed = ns.rest.patch(f"{path}/status", body, STRATEGIC).body
    found = {each["type"]: each["status"] for each in changed["status"]["conditions"]}
    assert found == {"example.com/One": "False", "example.com/Two": "True"}
    body = {"status": {"conditions": [{"type": "example.com/Two", "$patch": "delete"}]}}
    changed = ns.rest.patch(f"{path}/status", body, STRATEGIC).body
    assert [each["type"] for each in changed["status"]["conditions"]] == ["example.com/One"]


def test_strategic_patch_of_finalizers_and_owner_references(ns: Namespace, path: str) -> None:
    first = {"metadata": {"finalizers": ["example.com/a"]}}
    second = {"metadata": {"finalizers": ["example.com/b"]}}
    ns.rest.patch(path, first, STRATEGIC)
    # Finalizers are a set: a strategic patch adds.
    assert sorted(ns.rest.patch(path, second, STRATEGIC).body["metadata"]["finalizers"]) == [
        "example.com/a", "example.com/b",
    ]  # fmt: skip
    body = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}}
    assert ns.rest.patch(path, body, STRATEGIC).body["metadata"]["finalizers"] == ["example.com/b"]
    assert "finalizers" not in ns.rest.patch(path, {"metadata": {"finalizers": None}}, MERGE).body["metadata"]


def test_taints_are_merged_by_key_and_effect_only_as_a_whole_list(cluster: Cluster, ns: Namespace) -> None:
    node = f"/api/v1/nodes/{cluster.node()}"
    one = {"key": "example.com/one", "effect": "NoSchedule"}
    two = {"key": "example.com/two", "effect": "NoSchedule"}
    ns.rest.patch(node, {"spec": {"taints": [one]}}, STRATEGIC)
    # Taints have no merge key: even a strategic patch replaces the list.
    assert ns.rest.patch(node, {"spec": {"taints": [two]}}, STRATEGIC).body["spec"]["taints"] == [two]


def test_json_patch(ns: Namespace, path: str) -> None:
    operations: list[Object] = [
        {"op": "test", "path": "/metadata/labels/a", "value": "1"},
        {"op": "replace", "path": "/metadata/labels/a", "value": "9"},
        {"op": "remove", "path": "/metadata/labels/b"},
        {"op": "add", "path": "/metadata/annotations/example.com~1new", "value": "y"},
        {"op": "copy", "from": "/metadata/annotations/note", "path": "/metadata/annotations/copy"},
        {"op": "move", "from": "/metadata/annotations/note", "path": "/metadata/annotations/moved"},
    ]
    changed = ns.rest.patch(path, operations, JSON_PATCH).body
    assert changed["metadata"]["labels"] == {"a": "9"}
    assert changed["metadata"]["annotations"] == {"example.com/new": "y", "copy": "x", "moved": "x"}


def test_json_patch_whose_test_fails_changes_nothing(ns: Namespace, path: str) -> None:
    operations = [
        {"op": "replace", "path": "/metadata/labels/a", "value": "9"},
        {"op": "test", "path": "/metadata/labels/b", "value": "not 2"},
    ]
    answer = ns.rest.patch(path, operations, JSON_PATCH)
    assert (answer.code, answer.reason) == (422, "Invalid")
    assert ns.rest.get(path).body["metadata"]["labels"] == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        # Against the RFC: what is not there is replaced all the same, and tested as null.
        ({"op": "replace", "path": "/metadata/labels/none", "value": "x"}, 200),
        ({"op": "test", "path": "/metadata/labels/none", "value": None}, 200),
        ({"op": "test", "path": "/metadata/labels/none", "value": "x"}, 422),
        ({"op": "remove", "path": "/metadata/labels/none"}, 422),
        ({"op": "remove", "path": "/spec/schedulingGates/0"}, 422),
        ({"op": "remove", "path": "/spec/containers/9"}, 422),
        ({"op": "replace", "path": "/spec/containers/9", "value": {}}, 422),
        ({"op": "replace", "path": "/metadata/none/x", "value": "x"}, 422),
        ({"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/x"}, 422),
        ({"op": "move", "from": "/metadata/labels/none", "path": "/metadata/labels/y"}, 422),
    ],
)
def test_json_patch_of_what_is_not_there(ns: Namespace, path: str, operation: Object, code: int) -> None:
    answer = ns.rest.patch(path, [operation], JSON_PATCH)
    assert answer.code == code
    if operation["op"] == "replace" and code == 200:
        assert answer.body["metadata"]["labels"]["none"] == "x"


def test_patches_honour_the_version(ns: Namespace, path: str) -> None:
    version = ns.rest.get(path).version
    ns.rest.patch(path, {"metadata": {"labels": {"a": "2"}}})
    for kind in (MERGE, STRATEGIC):
        body = {"metadata": {"resourceVersion": version, "labels": {"a": "3"}}}
        answer = ns.rest.patch(path, body, kind)
        assert (answer.code, answer.reason) == (409, "Conflict")
    current = ns.rest.get(path).version
    body = {"metadata": {"resourceVersion": current, "labels": {"a": "3"}}}
    assert ns.rest.patch(path, body, MERGE).code == 200


def test_a_kind_of_patch_that_does_not_exist(ns: Namespace, path: str) -> None:
    answer = ns.rest.patch(path, {}, "application/json")
    assert (answer.code, answer.reason) == (415, "UnsupportedMediaType")
    assert ns.rest.patch(path, "{not json", MERGE).code == 400


def test_strategic_patches_are_for_built_in_kinds(cluster: Cluster, ns: Namespace) -> None:
    pool = cluster.scalable()
    assert ns.rest.patch(pool, {"metadata": {"labels": {"a": "b"}}}, STRATEGIC).code == 415
    assert ns.rest.patch(pool, {"metadata": {"labels": {"a": "b"}}}, MERGE).code == 200


def test_the_name_and_what_the_server_owns_cannot_be_patched(ns: Namespace, path: str) -> None:
    before = ns.rest.get(path).body["metadata"]
    answer = ns.rest.patch(path, {"metadata": {"name": "other"}})
    assert answer.code in (400, 422)
    answer = ns.rest.patch(path, {"metadata": {"uid": "00000000-0000-0000-0000-000000000000"}})
    assert answer.code == 422
    answer = ns.rest.patch(path, {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z"}})
    assert ns.rest.get(path).body["metadata"]["creationTimestamp"] == before["creationTimestamp"]


def test_most_of_a_pods_spec_cannot_change(ns: Namespace, path: str) -> None:
    answer = ns.rest.patch(path, {"spec": {"restartPolicy": "Always"}})
    assert (answer.code, answer.reason) == (422, "Invalid")
    assert "pod updates may not change fields other than" in answer.message
    answer = ns.rest.patch(path, {"spec": {"nodeSelector": {"a": "b"}}})
    assert answer.code == 422
    assert ns.rest.patch(path, {"spec": {"activeDeadlineSeconds": 50}}).code == 200
    assert ns.rest.patch(path, {"spec": {"activeDeadlineSeconds": 60}}).code == 422
    more = [*ns.rest.get(path).body["spec"]["tolerations"], {"key": "more", "operator": "Exists"}]
    assert ns.rest.patch(path, {"spec": {"tolerations": more}}).code == 200
    assert ns.rest.patch(path, {"spec": {"tolerations": []}}).code == 422


def test_the_main_resource_ignores_status_and_the_status_ignores_the_rest(ns: Namespace, path: str) -> None:
    ns.rest.patch(path, {"status": {"phase": "Failed"}})
    assert ns.rest.get(path).body["status"]["phase"] == "Pending"
    body = {"metadata": {"labels": {"a": "changed"}}, "spec": {"activeDeadlineSeconds": 5}, "status": {"message": "hi"}}
    assert ns.rest.patch(f"{path}/status", body).code == 200
    found = ns.rest.get(path).body
    assert found["status"]["message"] == "hi"
    assert "activeDeadlineSeconds" not in found["spec"]


def test_server_side_apply_is_there_or_says_that_it_is_not(cluster: Cluster, ns: Namespace) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"a": "1"}}
    answer = ns.rest.patch(f"{ns.path}/configmaps/applied", body, APPLY, fieldManager="test")
    if cluster.name == "real":
        assert answer.code == 201
    else:
        # On purpose: nothing in the product applies, and half an apply would be wrong in silence.
        assert (answer.code, answer.reason) == (501, "NotImplemented")
