"""POST, PUT, PATCH and DELETE of whole objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_elastic.embedded.http import conversion
from airflow_elastic.embedded.http.reading import render, selection_of
from airflow_elastic.embedded.http.request import Request
from airflow_elastic.embedded.http.status import ApiError, bad_request, invalid, status_object
from airflow_elastic.embedded.http.target import Target, existing
from airflow_elastic.embedded.patch import apply_patch, decode_patch
from airflow_elastic.embedded.registry.writer import DeleteOptions, fresh_copy
from airflow_elastic.embedded.store.entry import Entry, encode

if TYPE_CHECKING:
    from airflow_elastic.embedded.plane import ControlPlane

__all__ = ["create", "delete", "patch", "patch_entry", "replace"]


def create(plane: ControlPlane, request: Request, target: Target) -> tuple[int, bytes]:
    """Create an object."""
    resource = target.resource
    if "list" not in resource.verbs:
        return 201, encode(conversion.review(resource, request.object()))
    # Before the body is looked at: whatever it is, this is the answer that helps.
    plane.writer.check_served(resource)
    obj = conversion.to_stored(resource, request.object())
    if resource.namespaced and not target.namespace:
        raise bad_request("an empty namespace may not be set during creation")
    stored = conversion.stored_form(resource)
    entry = plane.writer.create(stored, target.namespace, obj, dry_run=request.dry_run)
    return 201, render(plane, request, resource, entry)


def replace(plane: ControlPlane, request: Request, target: Target, subresource: str = "") -> tuple[int, bytes]:
    """Replace an object."""
    entry = existing(plane.store(target.resource.store_key).get(target.key), target)
    obj = conversion.to_stored(target.resource, request.object())
    plane.user_agent = request.header(b"user-agent")
    resource = conversion.stored_form(target.resource)
    stored = plane.writer.replace(resource, entry, obj, subresource=subresource, dry_run=request.dry_run)
    return 200, render(plane, request, target.resource, stored)


def patch(plane: ControlPlane, request: Request, target: Target, subresource: str = "") -> tuple[int, bytes]:
    """Patch an object."""
    content_type = request.header(b"content-type").partition(";")[0].strip()
    body = decode_patch(content_type, request.body)
    entry = existing(plane.store(target.resource.store_key).get(target.key), target)
    plane.user_agent = request.header(b"user-agent")
    stored = patch_entry(plane, target, entry, content_type, body, subresource, request.dry_run)
    return 200, render(plane, request, target.resource, stored)


def patch_entry(
    plane: ControlPlane, target: Target, entry: Entry, content_type: str, body: object, subresource: str, dry_run: bool
) -> Entry:
    """Apply a decoded patch to an entry and store the result."""
    copy = conversion.to_shown(target.resource, fresh_copy(entry))
    version = copy["metadata"].pop("resourceVersion")
    changed = apply_patch(content_type, copy, body, builtin=target.resource.builtin)
    metadata = changed.get("metadata")
    if isinstance(metadata, dict) and metadata.get("resourceVersion") is None:
        # A patch without a version applies to whatever is there.
        metadata["resourceVersion"] = version
    if isinstance(metadata, dict) and metadata.get("uid") != entry.uid:
        rule = f'Invalid value: "{metadata.get("uid")}": field is immutable'
        raise invalid(target.resource.kind, target.resource.group, target.name, [("metadata.uid", rule)])
    changed = conversion.to_stored(target.resource, changed)
    return plane.writer.replace(
        conversion.stored_form(target.resource), entry, changed, subresource=subresource, dry_run=dry_run
    )


def delete(plane: ControlPlane, request: Request, target: Target) -> tuple[int, bytes]:
    """Delete one object, or all that are selected."""
    resource = target.resource
    options = DeleteOptions.of(request.object(), request.query)
    collection = plane.store(resource.store_key)
    if not target.name:
        if resource.plural == "namespaces" or "deletecollection" not in resource.verbs:
            raise ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
        selection = selection_of(request, target)
        chosen = [entry for entry in collection.entries(target.namespace) if selection.matches(entry.obj)]
        for entry in chosen:
            plane.writer.delete(resource, entry, options)
        items = b",".join(entry.json for entry in chosen)
        head = f'{{"kind":"{resource.kind}List","apiVersion":"{resource.api_version}","metadata":'
        metadata = f'{{"resourceVersion":"{plane.versions.current}"}},"items":['
        return 200, (head + metadata).encode() + items + b"]}"
    entry = existing(collection.get(target.key), target)
    last, gone = plane.writer.delete(resource, entry, options)
    if gone and resource.store_key != "pods":
        details = {"name": target.name, "kind": resource.plural, "uid": last.uid}
        if resource.group:
            details["group"] = resource.group
        return 200, encode(status_object(200, "", "", details))
    return 200, render(plane, request, resource, last)
