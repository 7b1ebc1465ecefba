"""Watches through the real clients."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
import time
import urllib.request
from typing import Any

import kubernetes_asyncio
import pytest
from embedded_helpers import Api, cluster_of, pod_body, until
from kubernetes import client, watch


def stream(api: Api, path: str, count: int = 1000) -> list[dict[str, Any]]:
    """Return the first events of a watch, or all of one that ends by itself."""
    with urllib.request.urlopen(api.cluster.url + path, timeout=10) as answer:
        return [json.loads(line) for line in itertools.islice(answer, count)]


def test_a_watch_starts_with_what_is_there_and_goes_on(api: Api) -> None:
    api.create("a", run_seconds=0)
    api.until_phase("a", "Succeeded")
    seen = []
    for event in watch.Watch().stream(api.core.list_namespaced_pod, "default", timeout_seconds=5):
        seen.append((event["type"], event["object"].metadata.name, event["object"].status.phase))
        if len(seen) == 1:
            api.create("b", run_seconds=0)
        if seen[-1][1:] == ("b", "Succeeded"):
            break
    assert seen[0] == ("ADDED", "a", "Succeeded")
    assert seen[1] == ("ADDED", "b", "Pending")
    assert ("MODIFIED", "b", "Running") in seen


def test_a_watch_resumes_after_a_version(api: Api) -> None:
    version = api.core.list_namespaced_pod("default").metadata.resource_version
    api.create("a", run_seconds=60)
    api.until_phase("a", "Running")
    path = f"/api/v1/namespaces/default/pods?watch=1&timeoutSeconds=9&resourceVersion={version}"
    events = stream(api, path, 2)
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED"]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(versions)
    assert versions[0] > int(version)


def test_old_and_foreign_versions_are_expired() -> None:
    with cluster_of(history=10) as cluster:
        api = Api(cluster)
        for number in range(40):
            api.core.create_namespaced_config_map("default", {"metadata": {"name": f"c{number}"}})
        for version in (1001, 10_000_000):
            path = f"/api/v1/configmaps?watch=true&resourceVersion={version}&timeoutSeconds=5"
            (error,) = stream(api, path)
            assert error["type"] == "ERROR"
            assert (error["object"]["code"], error["object"]["reason"]) == (410, "Expired")
        with pytest.raises(client.ApiException) as caught:
            api.core.list_namespaced_config_map("default", resource_version="10000000")
        assert caught.value.status == 504
        api.close()


def test_bookmarks_end_the_initial_events(api: Api) -> None:
    api.core.create_namespaced_config_map("default", {"metadata": {"name": "c"}})
    query = "watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
    events = stream(api, f"/api/v1/namespaces/default/configmaps?{query}&timeoutSeconds=9", 2)
    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK"]
    mark = events[1]["object"]
    assert mark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(mark["metadata"]["resourceVersion"]) >= int(events[0]["object"]["metadata"]["resourceVersion"])


def test_the_server_ends_the_stream_after_its_timeout(api: Api) -> None:
    start = time.monotonic()
    selector = "involvedObject.name=nobody"
    events = list(
        watch.Watch().stream(api.core.list_namespaced_event, "default", field_selector=selector, timeout_seconds=1)
    )
    assert events == []
    assert 0.9 < time.monotonic() - start < 5


def test_stopping_the_cluster_ends_watches() -> None:
    cluster = cluster_of()
    cluster.start()
    api = Api(cluster)
    ended = threading.Event()

    def read() -> None:
        list(watch.Watch().stream(api.core.list_namespaced_pod, "default", timeout_seconds=60))
        ended.set()

    threading.Thread(target=read, daemon=True).start()
    plane = cluster._plane
    assert plane is not None
    until(lambda: len(plane.open_watches) == 1)
    cluster.stop()
    assert ended.wait(5)


def test_a_reader_that_leaves_is_forgotten(api: Api) -> None:
    plane = api.cluster._plane
    assert plane is not None
    with urllib.request.urlopen(api.cluster.url + "/api/v1/pods?watch=true", timeout=5):
        until(lambda: len(plane.open_watches) == 1)
    until(lambda: not plane.open_watches)


def test_kubernetes_asyncio_lists_and_watches(api: Api) -> None:
    async def run() -> list[tuple[str, str]]:
        configuration = kubernetes_asyncio.client.Configuration(host=api.cluster.url)
        async with kubernetes_asyncio.client.ApiClient(configuration) as connection:
            core = kubernetes_asyncio.client.CoreV1Api(connection)
            await core.create_namespaced_pod("default", pod_body("a", run_seconds=0.05))
            seen = []
            async with kubernetes_asyncio.watch.Watch().stream(
                core.list_namespaced_pod, "default", timeout_seconds=5
            ) as events:
                async for event in events:
                    seen.append((event["type"], event["object"].status.phase))
                    if event["object"].status.phase == "Succeeded":
                        break
            patched = await core.patch_namespaced_pod("a", "default", {"metadata": {"labels": {"x": "y"}}})
            assert patched.metadata.labels == {"x": "y"}
            log = await core.read_namespaced_pod_log("a", "default")
            assert "simulated container" in log
            return seen

    seen = asyncio.run(run())
    assert seen[0][0] == "ADDED"
    assert seen[-1][1] == "Succeeded"
