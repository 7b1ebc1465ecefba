"""Other forms of the same objects: tables, metadata only, protobuf; and notations of time."""

from __future__ import annotations

import json
import time
import urllib.request
from typing import Any

import pytest
from embedded_helpers import Api

from airflow_elastic.embedded import timestamps
from airflow_elastic.embedded.http.protobuf import decode
from airflow_elastic.embedded.http.status import ApiError

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
METADATA = "application/json;as=PartialObjectMetadata{};v=v1;g=meta.k8s.io"


def get(api: Api, path: str, accept: str) -> list[Any]:
    request = urllib.request.Request(api.cluster.url + path, headers={"accept": accept})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return [json.loads(line) for line in answer.read().splitlines()]


def test_tables_of_lists_objects_and_watches(api: Api) -> None:
    api.create("a", run_seconds=60)
    api.until_phase("a", "Running")
    for path in ("/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/pods/a"):
        (table,) = get(api, path, TABLE)
        assert table["kind"] == "Table"
        assert table["columnDefinitions"][0] == {
            "name": "Name", "type": "string", "format": "name", "description": "", "priority": 0,
        }  # fmt: skip
        assert table["rows"][0]["cells"][:3] == ["a", "1/1", "Running"]
        assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    (table,) = get(api, "/api/v1/pods?includeObject=Object", TABLE)
    assert table["rows"][0]["object"]["spec"]["containers"]
    (table,) = get(api, "/api/v1/pods?includeObject=None", TABLE)
    assert "object" not in table["rows"][0]
    (event,) = get(api, "/api/v1/pods?watch=true&timeoutSeconds=1", TABLE)
    assert event["type"] == "ADDED"
    assert event["object"]["rows"][0]["cells"][0] == "a"


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/nodes", "/api/v1/namespaces", "/api/v1/events", "/api/v1/configmaps", "/api/v1/secrets",
        "/api/v1/serviceaccounts", "/apis/coordination.k8s.io/v1/leases", "/apis/policy/v1/poddisruptionbudgets",
        "/apis/scheduling.k8s.io/v1/priorityclasses", "/apis/embedded.airflow-elastic.io/v1/nodepools",
        "/apis/apps/v1/daemonsets", "/apis/batch/v1/jobs", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    ],
)  # fmt: skip
def test_every_table_has_a_cell_for_each_column(api: Api, path: str) -> None:
    (table,) = get(api, path, TABLE)
    columns = len(table["columnDefinitions"])
    assert all(len(row["cells"]) == columns for row in table["rows"])


def test_metadata_only(api: Api) -> None:
    api.create("a", run_seconds=60, labels={"x": "y"})
    (listed,) = get(api, "/api/v1/pods", METADATA.format("List"))
    assert listed["kind"] == "PartialObjectMetadataList"
    (item,) = listed["items"]
    assert set(item) == {"kind", "apiVersion", "metadata"}
    assert item["metadata"]["labels"] == {"x": "y"}
    (one,) = get(api, "/api/v1/namespaces/default/pods/a", METADATA.format(""))
    assert one["metadata"]["name"] == "a"


def field(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2, len(data)]) + data


def envelope(kind: str, raw: bytes, version: str = "v1") -> bytes:
    return b"k8s\x00" + field(1, field(1, version.encode()) + field(2, kind.encode())) + field(2, raw)


def test_protobuf_of_known_kinds() -> None:
    entry = field(1, b"a") + field(2, b"b")
    raw = field(1, field(1, b"name") + field(11, entry)) + field(2, entry) + field(3, entry)
    assert decode(envelope("ConfigMap", raw)) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "name", "labels": {"a": "b"}},
        "data": {"a": "b"},
        "binaryData": {"a": "Yg=="},
    }
    negative = bytes([2 << 3]) + b"\xfb" + b"\xff" * 8 + b"\x01"
    decoded = decode(envelope("PriorityClass", negative, "scheduling.k8s.io/v1"))
    assert decoded is not None
    assert decoded["value"] == -5


def test_protobuf_of_other_kinds_is_left_to_the_caller() -> None:
    assert decode(envelope("Pod", b"")) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"xyz",
        b"k8s\x00\xff",
        b"k8s\x00" + bytes([10, 200]),
        envelope("ConfigMap", bytes([10, 9, 1])),
        envelope("ConfigMap", bytes([11])),
        envelope("ConfigMap", bytes([8, 1])),
        envelope("ConfigMap", field(1, field(1, b"\xff\xfe"))),
    ],
)
def test_protobuf_that_is_none(body: bytes) -> None:
    with pytest.raises(ApiError) as caught:
        decode(body)
    assert caught.value.code == 400


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0s"), (119, "119s"), (120, "2m"), (200, "3m20s"), (1200, "20m"), (3 * 3600 + 60, "3h1m"), (9 * 3600, "9h"),
     (50 * 3600, "2d2h"), (9 * 86400, "9d")],
)  # fmt: skip
def test_ages_as_kubectl_shows_them(seconds: int, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 2_000_000_000.5)
    assert timestamps.age(timestamps.rfc3339(2_000_000_000 - seconds)) == shown
    assert timestamps.age(None) == "<unknown>"


def test_times() -> None:
    for text in (timestamps.now(), timestamps.now_micro(), timestamps.now_nano()):
        assert abs(timestamps.parse(text) - time.time()) < 5
    assert timestamps.rfc3339(0) == "1970-01-01T00:00:00Z"
