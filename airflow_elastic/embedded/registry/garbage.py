"""Garbage collection: what belonged to a deleted object goes as well."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from airflow_elastic.embedded.registry.resources import ALL, Resource
from airflow_elastic.embedded.store.entry import DELETED, Change
from airflow_elastic.embedded.types import Key, Object

if TYPE_CHECKING:
    from airflow_elastic.embedded.plane import ControlPlane

__all__ = ["GarbageCollector"]


class GarbageCollector:
    """Deletes objects when the last of their owners is deleted; costs nothing for objects without owners.

    An owner that never existed is not looked for, and ``propagationPolicy`` Foreground acts as Background.
    """

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._owned: dict[str, dict[tuple[str, Key], Resource]] = {}
        """By the owner's uid: the objects that name it."""
        self._spared: set[str] = set()
        for resource in ALL:
            if not resource.stored_as:
                plane.store(resource.store_key).listen(partial(self._on_change, resource))

    def orphan(self, uid: str) -> None:
        """Leave what an object owns alone when it is deleted."""
        self._spared.add(uid)

    def _on_change(self, resource: Resource, change: Change) -> None:
        entry = change.entry
        spot = (resource.store_key, entry.key)
        for owner in _owners(entry.obj):
            if change.type == DELETED:
                self._owned.get(owner, {}).pop(spot, None)
            else:
                self._owned.setdefault(owner, {})[spot] = resource
        if change.type == DELETED:
            owned = self._owned.pop(entry.uid, {})
            if owned and entry.uid not in self._spared:
                self._plane.loop.call_soon(self._collect, entry.uid, owned)
            self._spared.discard(entry.uid)

    def _collect(self, uid: str, owned: dict[tuple[str, Key], Resource]) -> None:
        # Imported late: the writer's module knows this one's neighbours.
        from airflow_elastic.embedded.registry.writer import DeleteOptions

        for (store_key, key), resource in owned.items():
            entry = self._plane.store(store_key).get(key)
            # Another object of the same name does not name this owner; one with a second owner stays with it.
            if entry is not None and uid in _owners(entry.obj) and not self._has_other_owner(entry.obj, uid):
                self._plane.writer.delete(resource, entry, DeleteOptions())

    def _has_other_owner(self, obj: Object, gone: str) -> bool:
        namespace = obj["metadata"].get("namespace", "")
        for reference in obj["metadata"].get("ownerReferences") or ():
            for resource in ALL:
                if resource.kind == reference.get("kind") and resource.api_version == reference.get("apiVersion"):
                    key = (namespace if resource.namespaced else "", reference.get("name", ""))
                    entry = self._plane.store(resource.store_key).get(key)
                    if entry is not None and entry.uid == reference.get("uid") != gone:
                        return True
        return False


def _owners(obj: Object) -> list[str]:
    references = obj["metadata"].get("ownerReferences")
    return [reference.get("uid", "") for reference in references] if references else []
