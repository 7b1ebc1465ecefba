"""All objects of one resource, with the log of their changes."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable

from airflow_elastic.embedded.store.entry import ADDED, DELETED, MODIFIED, Change, Entry
from airflow_elastic.embedded.store.watcher import Watcher
from airflow_elastic.embedded.types import Key, Object

__all__ = ["Collection", "Gone", "Versions"]

Listener = Callable[[Change], None]


class Gone(Exception):
    """The asked resource version is older than the log (HTTP 410)."""


class Versions:
    """The cluster-wide resource version counter."""

    __slots__ = ("current",)

    def __init__(self) -> None:
        self.current = 1000

    def next(self) -> int:
        """Return the next resource version."""
        self.current += 1
        return self.current


class Collection:
    """Stores immutable snapshots: a change replaces the entry, never the dictionaries inside.

    In-process listeners hear of a change right after it is made; a listener's own changes are told after all
    listeners have heard of the first, so everyone sees the same order.
    """

    def __init__(self, versions: Versions, history: int) -> None:
        self._versions = versions
        self._history = history
        # Cutting a list is cheap only when it is rare.
        self._slack = history // 4 + 1
        self._entries: dict[Key, Entry] = {}
        self._sorted: list[Key] | None = []
        self._log: list[Change] = []
        self._log_versions: list[int] = []
        self._forgotten = 0
        self._listeners: list[Listener] = []
        self._undelivered: deque[Change] = deque()
        self._delivering = False
        self._watchers_everywhere: set[Watcher] = set()
        self._watchers_by_namespace: dict[str, set[Watcher]] = {}
        self._watchers_by_name: dict[str, set[Watcher]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def get(self, key: Key) -> Entry | None:
        """Return the present version of one object."""
        return self._entries.get(key)

    def entries(self, namespace: str = "") -> list[Entry]:
        """Return the present versions in key order; of one namespace if it is named."""
        if self._sorted is None:
            self._sorted = sorted(self._entries)
        if namespace:
            return [self._entries[key] for key in self._sorted if key[0] == namespace]
        return [self._entries[key] for key in self._sorted]

    def values(self) -> Iterable[Entry]:
        """Return the present versions in no particular order, as a copy."""
        return list(self._entries.values())

    def put(self, key: Key, obj: Object) -> Entry:
        """Store a new version of an object, new or known. The object belongs to the store from now on."""
        version = self._versions.next()
        obj["metadata"]["resourceVersion"] = str(version)
        previous = self._entries.get(key)
        entry = Entry(key, obj, version)
        self._entries[key] = entry
        if previous is None:
            self._sorted = None
        self._record(Change(ADDED if previous is None else MODIFIED, entry, previous))
        return entry

    def remove(self, key: Key) -> Entry:
        """Remove an object; the returned last version carries the version of the removal."""
        previous = self._entries.pop(key)
        self._sorted = None
        version = self._versions.next()
        metadata = {**previous.obj["metadata"], "resourceVersion": str(version)}
        entry = Entry(key, {**previous.obj, "metadata": metadata}, version)
        self._record(Change(DELETED, entry, previous))
        return entry

    def listen(self, listener: Listener) -> None:
        """Call the listener after each change."""
        self._listeners.append(listener)

    def changes_after(self, version: int) -> list[Change]:
        """Return the log after a resource version.

        Raises:
            Gone: changes after that version have been forgotten.
        """
        if version < self._forgotten:
            raise Gone
        return self._log[bisect_right(self._log_versions, version) :]

    def add_watcher(self, watcher: Watcher) -> None:
        """Offer all further changes to the watcher."""
        self._watcher_home(watcher).add(watcher)

    def drop_watcher(self, watcher: Watcher) -> None:
        """Stop offering changes to the watcher."""
        self._watcher_home(watcher).discard(watcher)

    def watchers(self) -> list[Watcher]:
        """Return all open watchers."""
        homes = [self._watchers_everywhere, *self._watchers_by_namespace.values(), *self._watchers_by_name.values()]
        return [watcher for home in homes for watcher in home]

    def _watcher_home(self, watcher: Watcher) -> set[Watcher]:
        # A watch on one object (KubernetesPodOperator has one per task) must cost nothing when other objects change.
        if watcher.selection.name:
            return self._watchers_by_name.setdefault(watcher.selection.name, set())
        if watcher.selection.namespace:
            return self._watchers_by_namespace.setdefault(watcher.selection.namespace, set())
        return self._watchers_everywhere

    def _record(self, change: Change) -> None:
        self._log.append(change)
        self._log_versions.append(change.entry.version)
        if len(self._log) > self._history + self._slack:
            cut = len(self._log) - self._history
            self._forgotten = self._log_versions[cut - 1]
            del self._log[:cut]
            del self._log_versions[:cut]
        self._undelivered.append(change)
        if self._delivering:
            return
        self._delivering = True
        try:
            while self._undelivered:
                self._deliver(self._undelivered.popleft())
        finally:
            self._delivering = False

    def _deliver(self, change: Change) -> None:
        namespace, name = change.entry.key
        for watcher in self._watchers_everywhere:
            watcher.offer(change)
        for watcher in self._watchers_by_namespace.get(namespace, ()):
            watcher.offer(change)
        for watcher in self._watchers_by_name.get(name, ()):
            if watcher.selection.namespace in ("", namespace):
                watcher.offer(change)
        for listener in self._listeners:
            listener(change)
