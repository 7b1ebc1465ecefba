from __future__ import annotations

import time

from conformance.clusters import Cluster, until
from conformance.pods import Namespace, pod


def config_map(name: str, value: str = "", **labels: str) -> dict[str, object]:
    return {"metadata": {"name": name, "labels": labels}, "data": {"value": value}}


def maps(ns: Namespace) -> str:
    return f"{ns.path}/configmaps"


def test_a_watch_from_a_list_sees_exactly_what_comes_after(ns: Namespace) -> None:
    ns.rest.made(maps(ns), config_map("before"))
    start = ns.rest.get(maps(ns)).version
    with ns.rest.watch(maps(ns), resourceVersion=start) as watch:
        made = ns.rest.made(maps(ns), config_map("one"))
        changed = ns.rest.patch(f"{maps(ns)}/one", {"data": {"value": "2"}}).body
        assert ns.rest.delete(f"{maps(ns)}/one").code == 200
        kinds, objects = zip(*(watch.next() or ("", {}) for _ in range(3)), strict=True)
    assert kinds == ("ADDED", "MODIFIED", "DELETED")
    assert [each["metadata"]["name"] for each in objects] == ["one"] * 3
    assert objects[0]["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert objects[1]["metadata"]["resourceVersion"] == changed["metadata"]["resourceVersion"]
    assert objects[1]["data"] == {"value": "2"}
    # The last version carries the version of the deletion, so that a watch can resume behind it.
    assert int(objects[2]["metadata"]["resourceVersion"]) > int(changed["metadata"]["resourceVersion"])
    assert objects[2]["data"] == {"value": "2"}


def test_a_watch_resumes_in_the_middle(ns: Namespace) -> None:
    versions = [ns.rest.made(maps(ns), config_map(f"m{n}"))["metadata"]["resourceVersion"] for n in range(4)]
    with ns.rest.watch(maps(ns), resourceVersion=versions[1]) as watch:
        names = [(watch.next() or ("", {}))[1]["metadata"]["name"] for _ in range(2)]
        assert watch.quiet()
    assert names == ["m2", "m3"]


def test_a_watch_resumes_behind_a_deletion(ns: Namespace) -> None:
    ns.rest.made(maps(ns), config_map("one"))
    start = ns.rest.get(maps(ns)).version
    with ns.rest.watch(maps(ns), resourceVersion=start) as watch:
        ns.rest.delete(f"{maps(ns)}/one")
        deleted = watch.until(lambda kind, _: kind == "DELETED")
    with ns.rest.watch(maps(ns), resourceVersion=deleted["metadata"]["resourceVersion"]) as watch:
        ns.rest.made(maps(ns), config_map("two"))
        event = watch.next()
        assert event is not None
        assert (event[0], event[1]["metadata"]["name"]) == ("ADDED", "two")


def test_without_a_version_a_watch_begins_with_what_is_there(ns: Namespace) -> None:
    for name in ("b", "a"):
        ns.rest.made(maps(ns), config_map(name))
    for query in ({}, {"resourceVersion": "0"}):
        with ns.rest.watch(maps(ns), **query) as watch:
            mine: set[str] = set()
            while not {"a", "b"} <= mine:
                event = watch.next()
                assert event is not None
                assert event[0] == "ADDED"
                mine.add(event[1]["metadata"]["name"])


def test_a_selector_shows_leaving_and_entering_objects(ns: Namespace) -> None:
    ns.rest.made(maps(ns), config_map("one", tier="a"))
    start = ns.rest.get(maps(ns)).version
    with ns.rest.watch(maps(ns), resourceVersion=start, labelSelector="tier=a") as watch:
        ns.rest.made(maps(ns), config_map("other", tier="b"))
        ns.rest.patch(f"{maps(ns)}/one", {"metadata": {"labels": {"tier": "b"}}})
        ns.rest.patch(f"{maps(ns)}/one", {"data": {"value": "unseen"}})
        ns.rest.patch(f"{maps(ns)}/one", {"metadata": {"labels": {"tier": "a"}}})
        ns.rest.delete(f"{maps(ns)}/one")
        events = [watch.next() for _ in range(3)]
    assert [(event or ("",))[0] for event in events] == ["DELETED", "ADDED", "DELETED"]
    left = events[0]
    assert left is not None
    # A filtered watch shows an object that leaves the selection as it was last seen, with the version of the change.
    assert left[1]["metadata"]["labels"] == {"tier": "a"}


def test_a_field_selector_watches_one_object(ns: Namespace) -> None:
    start = ns.rest.get(ns.pods).version
    with ns.rest.watch(ns.pods, resourceVersion=start, fieldSelector="metadata.name=mine") as watch:
        for name in ("other", "mine"):
            ns.create(pod(name, schedulerName="nobody"))
        event = watch.next()
        assert event is not None
        assert (event[0], event[1]["metadata"]["name"]) == ("ADDED", "mine")
        assert watch.quiet()


def test_a_forgotten_version_is_gone(cluster: Cluster, ns: Namespace) -> None:
    path, version = cluster.forgotten(ns.name)
    with ns.rest.watch(path, resourceVersion=version) as watch:
        # Inside the stream, with the code 200: clients that only look at the code miss it.
        event = watch.next()
        assert event is not None
        kind, status = event
        assert kind == "ERROR"
        assert watch.next() is None
    assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
    assert "too old resource version" in status["message"]


def test_a_version_of_the_future_waits_or_is_refused_but_shows_nothing(ns: Namespace) -> None:
    future = str(int(ns.rest.get(maps(ns)).version) + 1_000_000)
    listed = ns.rest.get(maps(ns), resourceVersion=future)
    assert (listed.code, listed.reason) == (504, "Timeout")
    assert "Too large resource version" in listed.message


def test_the_server_ends_a_watch_after_its_timeout(ns: Namespace) -> None:
    began = time.monotonic()
    with ns.rest.watch(maps(ns), resourceVersion=ns.rest.get(maps(ns)).version, timeoutSeconds=1) as watch:
        assert watch.next() is None
    assert 0.9 < time.monotonic() - began < 5


def test_initial_events_end_with_a_bookmark(ns: Namespace) -> None:
    ns.rest.made(maps(ns), config_map("one", mine="yes"))
    query = {
        "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true",
        "labelSelector": "mine=yes",
    }  # fmt: skip
    with ns.rest.watch(maps(ns), **query) as watch:
        added = watch.next()
        bookmark = watch.next()
        assert added is not None
        assert bookmark is not None
        assert (added[0], added[1]["metadata"]["name"]) == ("ADDED", "one")
        assert bookmark[0] == "BOOKMARK"
        assert bookmark[1]["kind"] == "ConfigMap"
        assert bookmark[1]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert int(bookmark[1]["metadata"]["resourceVersion"]) >= int(added[1]["metadata"]["resourceVersion"])
        ns.rest.made(maps(ns), config_map("two", mine="yes"))
        event = watch.next()
        assert event is not None
        assert (event[0], event[1]["metadata"]["name"]) == ("ADDED", "two")


def test_initial_events_need_their_companions(ns: Namespace) -> None:
    refused = ns.rest.get(maps(ns), watch="true", sendInitialEvents="true")
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert "resourceVersionMatch" in refused.message


def test_bookmarks_come_while_nothing_changes(cluster: Cluster, ns: Namespace) -> None:
    start = ns.rest.get(maps(ns)).version
    with ns.rest.watch(maps(ns), resourceVersion=start, allowWatchBookmarks="true", timeoutSeconds=4) as watch:
        # Changes of other namespaces move the bookmark on; without them a watch would resume from ever older versions.
        ns.rest.made("/api/v1/namespaces/default/configmaps", config_map(ns.name))
        try:
            events = []
            while (event := watch.next(10)) is not None:
                events.append(event)
        finally:
            ns.rest.delete(f"/api/v1/namespaces/default/configmaps/{ns.name}")
    assert [kind for kind, _ in events if kind != "BOOKMARK"] == []
    if events:
        assert int(events[-1][1]["metadata"]["resourceVersion"]) >= int(start)


def test_a_watch_of_pods_sees_the_whole_life(cluster: Cluster, ns: Namespace) -> None:
    node = cluster.node()
    start = ns.rest.get(ns.pods).version
    with ns.rest.watch(ns.pods, resourceVersion=start) as watch:
        ns.place(node, "one", seconds=0.3)
        bound = watch.until(lambda _, obj: bool(obj["spec"].get("nodeName")))
        assert bound["spec"]["nodeName"] == node
        watch.until(lambda _, obj: obj["status"]["phase"] == "Running")
        watch.until(lambda _, obj: obj["status"]["phase"] == "Succeeded")
        ns.rest.delete(f"{ns.pods}/one")
        watch.until(lambda kind, _: kind == "DELETED")
    kinds = [kind for kind, _ in watch.seen]
    assert kinds[0] == "ADDED"
    assert set(kinds[1:-1]) == {"MODIFIED"}
    versions = [int(obj["metadata"]["resourceVersion"]) for _, obj in watch.seen]
    assert versions == sorted(set(versions))


def test_lists_and_watches_of_all_namespaces(ns: Namespace) -> None:
    start = ns.rest.get("/api/v1/configmaps").version
    with ns.rest.watch("/api/v1/configmaps", resourceVersion=start, labelSelector=f"own={ns.name}") as watch:
        ns.rest.made(maps(ns), config_map("one", own=ns.name))
        event = watch.next()
        assert event is not None
        assert event[1]["metadata"]["namespace"] == ns.name
    assert ns.rest.get("/api/v1/configmaps", labelSelector=f"own={ns.name}").names == ["one"]


def test_pages(ns: Namespace) -> None:
    for number in range(5):
        ns.rest.made(maps(ns), config_map(f"m{number}", paged="yes"))
    first = ns.rest.get(maps(ns), limit=2, labelSelector="paged=yes")
    seen, token, version = first.names, first.body["metadata"]["continue"], first.version
    assert len(seen) == 2
    ns.rest.made(maps(ns), config_map("m9", paged="yes"))
    while token:
        page = ns.rest.get(maps(ns), limit=2, labelSelector="paged=yes", **{"continue": token})
        assert page.version == version
        seen += page.names
        token = page.body["metadata"].get("continue", "")
    assert seen == [f"m{number}" for number in range(5)]


def test_pages_of_a_selector_do_not_count_what_remains(ns: Namespace) -> None:
    for number in range(3):
        ns.rest.made(maps(ns), config_map(f"m{number}", paged="yes"))
    whole = ns.rest.get(maps(ns), limit=1).body["metadata"]
    assert whole["remainingItemCount"] >= 2
    selected = ns.rest.get(maps(ns), limit=1, labelSelector="paged=yes").body["metadata"]
    assert "remainingItemCount" not in selected


def test_an_event_watch_ends_by_itself_as_the_operator_expects(ns: Namespace) -> None:
    ns.create(pod("nowhere", nodeSelector={"no": "where"}))
    until(lambda: ns.reasons("nowhere"), 20, "an event about the pod")
    query = {"fieldSelector": "involvedObject.name=nowhere", "timeoutSeconds": 1}
    with ns.rest.watch(f"{ns.path}/events", **query) as watch:
        event = watch.next()
        assert event is not None
        assert event[1]["involvedObject"]["name"] == "nowhere"
        assert event[1]["reason"] == "FailedScheduling"
        while watch.next() is not None:
            pass
