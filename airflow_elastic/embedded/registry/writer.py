"""Creating, changing and deleting objects: the rules that hold for every resource."""

from __future__ import annotations

import json
import os
import random
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_elastic.embedded import timestamps
from airflow_elastic.embedded.http.status import (
    ApiError,
    already_exists,
    bad_request,
    conflict,
    invalid,
    not_found,
    unsupported,
)
from airflow_elastic.embedded.registry import others, pods
from airflow_elastic.embedded.registry.resources import BY_PATH, Resource
from airflow_elastic.embedded.registry.schema import check_types
from airflow_elastic.embedded.registry.unsimulated import unsimulated_parts
from airflow_elastic.embedded.registry.validation import check_metadata
from airflow_elastic.embedded.store.entry import Entry
from airflow_elastic.embedded.types import Object

if TYPE_CHECKING:
    from airflow_elastic.embedded.plane import ControlPlane

__all__ = ["DeleteOptions", "Writer", "new_uid"]

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SERVER_OWNED = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "generation",
)
_with_status = frozenset({"pods", "nodes", "namespaces", "resourcequotas"})


def new_uid() -> str:
    """Return a random object uid."""
    return str(uuid.UUID(bytes=os.urandom(16), version=4))


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """What a delete request may ask for."""

    grace_seconds: int | None = None
    uid: str | None = None
    resource_version: str | None = None
    dry_run: bool = False
    orphan: bool = False
    """Leave what the object owns alone."""

    @classmethod
    def of(cls, body: Object, query: dict[str, str]) -> DeleteOptions:
        """Read a DeleteOptions body and the query parameters that mean the same."""
        grace: Any = body.get("gracePeriodSeconds", query.get("gracePeriodSeconds"))
        preconditions = body.get("preconditions") or {}
        try:
            seconds = None if grace is None else max(0, int(grace))
        except (TypeError, ValueError):
            raise bad_request(f"gracePeriodSeconds {grace!r} is not a number of seconds") from None
        return cls(
            grace_seconds=seconds,
            uid=preconditions.get("uid"),
            resource_version=preconditions.get("resourceVersion"),
            dry_run=bool(body.get("dryRun") or query.get("dryRun")),
            orphan=body.get("propagationPolicy", query.get("propagationPolicy")) == "Orphan",
        )


class Writer:
    """Every write of the API, and those of the cluster's own controllers that need the same rules."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def create(self, resource: Resource, namespace: str, obj: Object, *, dry_run: bool = False) -> Entry:
        """Store a new object.

        Raises:
            ApiError: refused.
        """
        self.check_served(resource)
        self._check_type(resource, obj)
        metadata = obj["metadata"]
        if metadata.get("resourceVersion"):
            # Without a reason, as the API server does.
            raise ApiError(500, "", "resourceVersion should not be set on objects to be created")
        for field in (*_SERVER_OWNED, "resourceVersion", "managedFields"):
            metadata.pop(field, None)
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"][:58] + "".join(random.choices(_SUFFIX_LETTERS, k=5))
        if resource.namespaced:
            if not metadata.get("namespace"):
                metadata["namespace"] = namespace
            elif metadata["namespace"] != namespace:
                raise bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request"
                )
            self._check_namespace(namespace)
        else:
            metadata.pop("namespace", None)
        check_metadata(resource.kind, resource.group, metadata)
        metadata["uid"] = new_uid()
        metadata["creationTimestamp"] = timestamps.now()
        obj["apiVersion"], obj["kind"] = resource.api_version, resource.kind
        key = (namespace if resource.namespaced else "", metadata["name"])
        collection = self._plane.store(resource.store_key)
        if key in collection:
            raise already_exists(resource.plural, resource.group, key[1])
        if resource.store_key == "pods":
            metadata["generation"] = 1
            pods.prepare_create(self._plane, obj)
        else:
            prepare = others.CREATE.get(resource.store_key)
            if prepare is not None:
                prepare(self._plane, obj)
        if dry_run:
            metadata["resourceVersion"] = ""
            return Entry(key, obj, 0)
        entry = collection.put(key, obj)
        if resource.store_key == "namespaces":
            self.create(BY_PATH["", "v1", "serviceaccounts"], key[1], {"metadata": {"name": "default"}})
        if resource.store_key == "pods":
            for note in unsimulated_parts(obj):
                self._plane.recorder.emit(obj, "NotSimulated", note, "embedded-cluster", warning=True)
        return entry

    def replace(
        self, resource: Resource, entry: Entry, obj: Object, *, subresource: str = "", dry_run: bool = False
    ) -> Entry:
        """Store a changed object; ``obj`` is the whole new object and belongs to the store afterwards.

        Raises:
            ApiError: refused, or the object has changed meanwhile.
        """
        self._check_type(resource, obj)
        old = entry.obj
        before = old["metadata"]
        metadata = obj["metadata"]
        if metadata.get("name", entry.key[1]) != entry.key[1]:
            raise bad_request("the name of the object does not match the name on the URL")
        sent_version = metadata.get("resourceVersion")
        if sent_version and sent_version != before["resourceVersion"]:
            raise conflict(resource.plural, resource.group, entry.key[1])
        if metadata.get("uid") and metadata["uid"] != before["uid"]:
            why = f"Precondition failed: UID in precondition: {metadata['uid']}, UID in object meta: {before['uid']}"
            raise conflict(resource.plural, resource.group, entry.key[1], why)
        if subresource == "status":
            obj = {**old, "metadata": dict(before), "status": obj.get("status") or {}}
        else:
            obj = self._merge_main(resource, obj, old)
        unchanged = {**obj["metadata"], "resourceVersion": before["resourceVersion"]}
        obj["metadata"] = unchanged
        if obj == old:
            return entry
        if dry_run:
            return Entry(entry.key, obj, entry.version)
        obj["metadata"] = dict(unchanged)
        if "generation" in before and obj.get("spec") != old.get("spec"):
            obj["metadata"]["generation"] = before["generation"] + 1
        collection = self._plane.store(resource.store_key)
        stored = collection.put(entry.key, obj)
        if before.get("deletionTimestamp") and before.get("finalizers") and not obj["metadata"].get("finalizers"):
            return self._plane.finalized(resource, stored)
        return stored

    def delete(self, resource: Resource, entry: Entry, options: DeleteOptions) -> tuple[Entry, bool]:
        """Delete an object, at once or gracefully; returns its last version and whether it is gone.

        Raises:
            ApiError: a precondition failed.
        """
        metadata = entry.obj["metadata"]
        for what, wanted, found in (
            ("UID", options.uid, metadata["uid"]),
            ("ResourceVersion", options.resource_version, metadata["resourceVersion"]),
        ):
            if wanted and wanted != found:
                why = f"Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
                raise conflict(resource.plural, resource.group, entry.key[1], why)
        if options.dry_run:
            return entry, False
        if options.orphan:
            self._plane.garbage.orphan(entry.uid)
        if resource.store_key == "pods":
            return self._plane.pod_deletion.delete(entry, options.grace_seconds)
        if resource.store_key == "namespaces":
            return self._plane.delete_namespace(entry)
        if metadata.get("finalizers"):
            if metadata.get("deletionTimestamp"):
                return entry, False
            marked = {**metadata, "deletionTimestamp": timestamps.now(), "deletionGracePeriodSeconds": 0}
            return self._plane.store(resource.store_key).put(entry.key, {**entry.obj, "metadata": marked}), False
        return self._plane.store(resource.store_key).remove(entry.key), True

    @staticmethod
    def check_served(resource: Resource) -> None:
        """Check that objects of a resource can be created.

        Raises:
            ApiError: 501, with the reason.
        """
        if resource.no_controller:
            raise unsupported(f"creating {resource.plural}: {resource.no_controller}", "create pods instead")

    def _merge_main(self, resource: Resource, obj: Object, old: Object) -> Object:
        before = old["metadata"]
        metadata = obj["metadata"]
        metadata.pop("managedFields", None)
        for field in _SERVER_OWNED:
            metadata.pop(field, None)
            if field in before:
                metadata[field] = before[field]
        if before.get("deletionTimestamp"):
            self._check_finalizers(resource, metadata, before)
        metadata["name"] = before["name"]
        if "namespace" in before:
            metadata["namespace"] = before["namespace"]
        check_metadata(resource.kind, resource.group, metadata)
        obj["apiVersion"], obj["kind"] = old["apiVersion"], old["kind"]
        if "status" in old:
            obj["status"] = old["status"]
        if resource.store_key == "pods":
            if not isinstance(obj.get("spec"), dict):
                raise invalid("Pod", "", before["name"], [("spec", "Required value")])
            pods.prepare_update(self._plane, obj, old)
        else:
            prepare = others.UPDATE.get(resource.store_key)
            if prepare is not None:
                prepare(self._plane, obj, old)
        return obj

    @staticmethod
    def _check_finalizers(resource: Resource, metadata: Object, before: Object) -> None:
        kept = before.get("finalizers") or ()
        added = [name for name in metadata.get("finalizers") or () if name not in kept]
        if added:
            rule = f"Forbidden: no new finalizers can be added if the object is being deleted, found {added}"
            raise invalid(resource.kind, resource.group, before["name"], [("metadata.finalizers", rule)])

    def _check_type(self, resource: Resource, obj: Object) -> None:
        if not isinstance(obj, dict):
            raise bad_request("the body of the request must be a JSON object")
        kind, version = obj.get("kind"), obj.get("apiVersion")
        if kind and kind != resource.kind:
            raise bad_request(
                f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '
                f"the object is a {kind}"
            )
        if version and version != resource.api_version:
            what = f"the API version in the data ({version}) does not match the expected API version"
            raise bad_request(f"{what} ({resource.api_version})")
        if not isinstance(obj.get("metadata"), dict):
            obj["metadata"] = {}
        check_types(resource.kind, resource.version, resource.store_key, obj)

    def _check_namespace(self, namespace: str) -> None:
        entry = self._plane.store("namespaces").get(("", namespace))
        if entry is None:
            raise not_found("namespaces", "", namespace)
        if entry.obj["status"]["phase"] == "Terminating":
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise ApiError(403, "Forbidden", why, {"name": namespace, "kind": "namespaces"})


def fresh_copy(entry: Entry) -> Object:
    """Return a deep copy that may be changed (through JSON, which is the fastest deep copy there is)."""
    copy: Object = json.loads(entry.json)
    return copy
