from __future__ import annotations

import json

import pytest

from airflow_elastic.embedded.selectors import Selection, parse_field_selector, parse_label_selector
from airflow_elastic.embedded.store.collection import Collection, Gone, Versions
from airflow_elastic.embedded.store.entry import Change
from airflow_elastic.embedded.store.watcher import Watcher
from airflow_elastic.embedded.types import Object


def thing(name: str, **labels: str) -> Object:
    return {"metadata": {"name": name, "uid": name, "labels": labels}}


def put(collection: Collection, name: str, namespace: str = "n", **labels: str) -> None:
    collection.put((namespace, name), thing(name, **labels))


def lines(watcher: Watcher) -> list[tuple[str, str]]:
    events = [json.loads(line) for line in watcher.take().splitlines()]
    return [(event["type"], event["object"]["metadata"]["name"]) for event in events]


def test_versions_rise_and_the_log_answers_what_came_after() -> None:
    collection = Collection(Versions(), 100)
    put(collection, "a")
    first = collection.get(("n", "a"))
    assert first is not None
    put(collection, "b")
    collection.remove(("n", "a"))
    changes = collection.changes_after(first.version)
    assert [(c.type, c.entry.key[1]) for c in changes] == [("ADDED", "b"), ("DELETED", "a")]
    assert changes[-1].entry.obj["metadata"]["resourceVersion"] == str(changes[-1].entry.version)
    # The removed object's own version is what it was: snapshots never change.
    assert first.obj["metadata"]["resourceVersion"] == str(first.version)


def test_old_versions_are_gone() -> None:
    collection = Collection(Versions(), 5)
    for number in range(20):
        put(collection, f"p{number}")
    with pytest.raises(Gone):
        collection.changes_after(1001)
    last = collection.get(("n", "p19"))
    assert last is not None
    assert collection.changes_after(last.version) == []


def test_entries_are_sorted_and_by_namespace() -> None:
    collection = Collection(Versions(), 5)
    for namespace, name in (("b", "x"), ("a", "z"), ("a", "y")):
        put(collection, name, namespace)
    assert [entry.key for entry in collection.entries()] == [("a", "y"), ("a", "z"), ("b", "x")]
    assert [entry.key[1] for entry in collection.entries("a")] == ["y", "z"]


def test_watchers_see_objects_enter_and_leave_their_selection() -> None:
    collection = Collection(Versions(), 100)
    watcher = Watcher(Selection("", parse_label_selector("on=yes")))
    collection.add_watcher(watcher)
    put(collection, "a", on="no")
    put(collection, "a", on="yes")
    put(collection, "a", on="yes", more="1")
    put(collection, "a", on="no")
    collection.remove(("n", "a"))
    assert lines(watcher) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


def test_watchers_of_one_object_or_namespace_hear_of_nothing_else() -> None:
    collection = Collection(Versions(), 100)
    one = Watcher(Selection("n", (), parse_field_selector("metadata.name=a")))
    namespace = Watcher(Selection("n"))
    for watcher in (one, namespace):
        collection.add_watcher(watcher)
    for where, name in (("n", "a"), ("n", "b"), ("other", "a")):
        put(collection, name, where)
    assert lines(one) == [("ADDED", "a")]
    assert lines(namespace) == [("ADDED", "a"), ("ADDED", "b")]
    collection.drop_watcher(one)
    put(collection, "a")
    assert lines(one) == []


def test_watchers_share_the_bytes() -> None:
    collection = Collection(Versions(), 100)
    watchers = [Watcher(Selection()) for _ in range(2)]
    for watcher in watchers:
        collection.add_watcher(watcher)
    put(collection, "a")
    first, second = (watcher._pending[0] for watcher in watchers)
    assert first is second


def test_listeners_hear_changes_in_one_order_even_if_they_write() -> None:
    collection = Collection(Versions(), 100)
    heard: list[tuple[str, str]] = []

    def writing(change: Change) -> None:
        if change.entry.key[1] == "a":
            put(collection, "b")

    def hearing(change: Change) -> None:
        heard.append((change.type, change.entry.key[1]))

    collection.listen(writing)
    collection.listen(hearing)
    put(collection, "a")
    assert heard == [("ADDED", "a"), ("ADDED", "b")]
