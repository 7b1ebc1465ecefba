from __future__ import annotations

import copy
from typing import Any

import pytest

from airflow_elastic.embedded.http.status import ApiError
from airflow_elastic.embedded.patch import (
    JSON_PATCH,
    MERGE_PATCH,
    SERVER_SIDE_APPLY,
    STRATEGIC_PATCH,
    apply_patch,
    decode_patch,
)

POD: dict[str, Any] = {
    "metadata": {"name": "a", "labels": {"x": "1", "y": "2"}, "finalizers": ["one"]},
    "spec": {
        "containers": [
            {"name": "base", "image": "i:1", "env": [{"name": "A", "value": "1"}], "args": ["a", "b"]},
            {"name": "side", "image": "s:1"},
        ],
        "tolerations": [{"key": "a"}],
    },
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}


def patched(kind: str, patch: Any, builtin: bool = True) -> dict[str, Any]:
    return apply_patch(kind, copy.deepcopy(POD), patch, builtin=builtin)


def test_merge_patch_replaces_lists_and_removes_nulls() -> None:
    result = patched(MERGE_PATCH, {"metadata": {"labels": {"x": None, "z": "3"}}, "spec": {"containers": []}})
    assert result["metadata"]["labels"] == {"y": "2", "z": "3"}
    assert result["spec"]["containers"] == []


def test_strategic_patch_merges_lists_by_key() -> None:
    changes = {
        "spec": {
            "containers": [
                {"name": "base", "image": "i:2", "env": [{"name": "B", "value": "2"}], "args": ["c"]},
                {"name": "new", "image": "n"},
            ]
        }
    }
    containers = patched(STRATEGIC_PATCH, changes)["spec"]["containers"]
    assert [c["name"] for c in containers] == ["base", "side", "new"]
    assert containers[0] == {
        "name": "base",
        "image": "i:2",
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
        "args": ["c"],
    }


def test_strategic_patch_directives() -> None:
    deleted = patched(STRATEGIC_PATCH, {"spec": {"containers": [{"name": "side", "$patch": "delete"}]}})
    assert [c["name"] for c in deleted["spec"]["containers"]] == ["base"]
    replaced = patched(STRATEGIC_PATCH, {"spec": {"containers": [{"$patch": "replace"}, {"name": "only"}]}})
    assert replaced["spec"]["containers"] == [{"name": "only"}]
    retained = patched(STRATEGIC_PATCH, {"metadata": {"$retainKeys": ["name"], "name": "a"}})
    assert retained["metadata"] == {"name": "a"}
    emptied = patched(STRATEGIC_PATCH, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["one"]}})
    assert emptied["metadata"]["finalizers"] == []
    ordered = patched(
        STRATEGIC_PATCH,
        {"spec": {"$setElementOrder/containers": [{"name": "base"}], "containers": [{"name": "base", "image": "z"}]}},
    )
    assert ordered["spec"]["containers"][0]["image"] == "z"


def test_strategic_patch_keeps_atomic_lists_atomic() -> None:
    result = patched(STRATEGIC_PATCH, {"spec": {"tolerations": [{"key": "b"}]}})
    assert result["spec"]["tolerations"] == [{"key": "b"}]
    merged = patched(STRATEGIC_PATCH, {"metadata": {"finalizers": ["two"]}})
    assert merged["metadata"]["finalizers"] == ["one", "two"]
    conditions = patched(STRATEGIC_PATCH, {"status": {"conditions": [{"type": "Ready", "status": "False"}]}})
    assert conditions["status"]["conditions"] == [{"type": "Ready", "status": "False"}]


def test_strategic_patch_mistakes() -> None:
    for patch in (
        {"spec": {"containers": [{"image": "no name"}]}},
        {"$patch": "explode"},
        {"spec": {"$strange/containers": []}},
    ):
        with pytest.raises(ApiError) as caught:
            patched(STRATEGIC_PATCH, patch)
        assert caught.value.code == 400


def test_json_patch_operations() -> None:
    result = patched(
        JSON_PATCH,
        [
            {"op": "test", "path": "/metadata/name", "value": "a"},
            {"op": "add", "path": "/metadata/labels/a~1b", "value": "new"},
            {"op": "add", "path": "/spec/tolerations/-", "value": {"key": "z"}},
            {"op": "add", "path": "/spec/tolerations/0", "value": {"key": "first"}},
            {"op": "replace", "path": "/spec/containers/1/image", "value": "s:2"},
            {"op": "copy", "from": "/metadata/labels/x", "path": "/metadata/labels/copy"},
            {"op": "move", "from": "/metadata/labels/y", "path": "/metadata/labels/moved"},
            {"op": "remove", "path": "/metadata/finalizers"},
        ],
    )
    assert result["metadata"]["labels"] == {"x": "1", "a/b": "new", "copy": "1", "moved": "2"}
    assert [t["key"] for t in result["spec"]["tolerations"]] == ["first", "a", "z"]
    assert result["spec"]["containers"][1]["image"] == "s:2"
    assert "finalizers" not in result["metadata"]


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        ({"op": "test", "path": "/metadata/name", "value": "b"}, 422),
        ({"op": "remove", "path": "/metadata/gone"}, 422),
        ({"op": "remove", "path": "/spec/containers/9"}, 422),
        ({"op": "replace", "path": "/spec/containers/9", "value": 1}, 422),
        ({"op": "add", "path": "/spec/containers/x", "value": 1}, 422),
        ({"op": "dance", "path": "/a"}, 400),
        ({"op": "add", "path": "relative", "value": 1}, 400),
        ({"op": "add", "path": "/a"}, 400),
        ("not an operation", 400),
    ],
)
def test_json_patch_mistakes(operation: Any, code: int) -> None:
    with pytest.raises(ApiError) as caught:
        patched(JSON_PATCH, [operation])
    assert caught.value.code == code


def test_types_that_a_resource_does_not_take() -> None:
    with pytest.raises(ApiError) as caught:
        patched(STRATEGIC_PATCH, {}, builtin=False)
    assert caught.value.code == 415
    with pytest.raises(ApiError) as caught:
        patched("application/vnd.kubernetes.protobuf", {})
    assert caught.value.code == 415


def test_replacing_and_testing_what_is_not_there() -> None:
    assert patched(JSON_PATCH, [{"op": "replace", "path": "/metadata/new", "value": "x"}])["metadata"]["new"] == "x"
    assert patched(JSON_PATCH, [{"op": "test", "path": "/metadata/gone", "value": None}])


@pytest.mark.parametrize(("kind", "text", "code"), [(MERGE_PATCH, b"a: b", 400), (SERVER_SIDE_APPLY, b"a: b", 501)])
def test_patches_that_are_not_read(kind: str, text: bytes, code: int) -> None:
    with pytest.raises(ApiError) as caught:
        decode_patch(kind, text)
    assert caught.value.code == code
