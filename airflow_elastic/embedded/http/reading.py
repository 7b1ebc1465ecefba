"""GET: single objects, lists with selectors and pages, watches."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from airflow_elastic.embedded.http import tables
from airflow_elastic.embedded.http.conversion import to_shown
from airflow_elastic.embedded.http.request import Request
from airflow_elastic.embedded.http.status import ApiError, bad_request, expired
from airflow_elastic.embedded.http.target import Target, existing
from airflow_elastic.embedded.http.watching import serve_watch
from airflow_elastic.embedded.registry.resources import Resource
from airflow_elastic.embedded.selectors import Selection, parse_field_selector, parse_label_selector
from airflow_elastic.embedded.store.entry import Entry, encode

if TYPE_CHECKING:
    from airflow_elastic.embedded.plane import ControlPlane

__all__ = ["get", "list_or_watch", "render", "selection_of"]

_ANYWHERE = frozenset({"metadata.name", "metadata.namespace"})
_FIELDS: dict[str, frozenset[str]] = {
    "pods": frozenset(
        {
            "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
            "status.phase", "status.podIP", "status.nominatedNodeName",
        }
    ),
    "nodes": frozenset({"spec.unschedulable"}),
    "namespaces": frozenset({"status.phase"}),
    "secrets": frozenset({"type"}),
    "events": frozenset(
        {
            "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
            "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
            "reportingComponent", "source", "type", "regarding.kind", "regarding.namespace", "regarding.name",
            "regarding.uid", "reportingController",
        }
    ),
}  # fmt: skip


def selection_of(request: Request, target: Target) -> Selection:
    """Read namespace, labelSelector and fieldSelector.

    Raises:
        ApiError: 400 for a selector that cannot be read or a field that cannot be selected by.
    """
    label_text, field_text = request.query.get("labelSelector", ""), request.query.get("fieldSelector", "")
    try:
        labels = parse_label_selector(label_text) if label_text else ()
        fields = parse_field_selector(field_text) if field_text else ()
    except ValueError as error:
        raise bad_request(f"unable to parse the selector: {error}") from None
    selectable = _FIELDS.get(target.resource.store_key, frozenset())
    for path, _, _ in fields:
        if path not in _ANYWHERE and path not in selectable:
            raise bad_request(f"field label not supported: {path}")
    if target.name:
        fields = (*fields, ("metadata.name", target.name, True))
    if target.resource.store_key == "events":
        fields = tuple((_stored_event_field(path), value, equal) for path, value, equal in fields)
    return Selection(target.namespace, labels, fields)


def _stored_event_field(path: str) -> str:
    path = path.replace("regarding.", "involvedObject.")
    return {"reportingController": "reportingComponent", "source": "source.component"}.get(path, path)


def render(plane: ControlPlane, request: Request, resource: Resource, entry: Entry) -> bytes:
    """Return one object in the form that the request accepts."""
    accept = request.header(b"accept")
    if "as=Table" in accept:
        return encode(tables.table(resource, [entry], str(entry.version), request.query.get("includeObject", "")))
    if "as=PartialObjectMetadata" in accept:
        return encode(tables.partial(entry.obj))
    if resource.stored_as:
        return encode(to_shown(resource, entry.obj))
    return entry.json


def get(plane: ControlPlane, request: Request, target: Target) -> tuple[int, bytes]:
    """Return one object."""
    entry = existing(plane.store(target.resource.store_key).get(target.key), target)
    return 200, render(plane, request, target.resource, entry)


async def list_or_watch(plane: ControlPlane, request: Request, target: Target) -> tuple[int, bytes] | None:
    """Return a list, or stream changes with ``watch=true``."""
    selection = selection_of(request, target)
    if request.flag("watch"):
        await serve_watch(plane, request, target, selection)
        return None
    await _check_version(plane, request)
    resource = target.resource
    token = request.query.get("continue", "")
    version = plane.versions.current
    if token:
        version, entries = plane.pages.take(token)
    else:
        entries = plane.store(resource.store_key).entries(target.namespace)
        if not selection.everything:
            entries = [entry for entry in entries if selection.matches(entry.obj)]
    limit = request.number("limit")
    metadata: dict[str, object] = {"resourceVersion": str(version)}
    if limit and len(entries) > limit:
        metadata["continue"] = plane.pages.keep(version, entries[limit:])
        if selection.everything:
            metadata["remainingItemCount"] = len(entries) - limit
        entries = entries[:limit]
    return 200, _list_body(request, resource, entries, metadata)


def _list_body(request: Request, resource: Resource, entries: list[Entry], metadata: dict[str, object]) -> bytes:
    accept = request.header(b"accept")
    if "as=Table" in accept:
        include = request.query.get("includeObject", "")
        shown = tables.table(resource, entries, str(metadata["resourceVersion"]), include)
        shown["metadata"] = metadata
        return encode(shown)
    if "as=PartialObjectMetadata" in accept:
        return encode(
            {
                "kind": "PartialObjectMetadataList",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata,
                "items": [tables.partial(entry.obj) for entry in entries],
            }
        )
    if resource.stored_as:
        items = b",".join(encode(to_shown(resource, entry.obj)) for entry in entries)
    else:
        items = b",".join([entry.json for entry in entries])
    head = f'{{"kind":"{resource.kind}List","apiVersion":"{resource.api_version}","metadata":{json.dumps(metadata)},'
    return head.encode() + b'"items":[' + items + b"]}"


async def _check_version(plane: ControlPlane, request: Request) -> None:
    """Refuse a list at a version that this cluster has not reached, or at an exact old one."""
    wanted, match = request.number("resourceVersion"), request.query.get("resourceVersionMatch", "")
    if not wanted:
        return
    if wanted > plane.versions.current:
        # Clients retry a 504 in a loop; a pause keeps the loop slow.
        await asyncio.sleep(0.1)
        causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
        message = f"Timeout: Too large resource version: {wanted}, current: {plane.versions.current}"
        raise ApiError(504, "Timeout", message, {"retryAfterSeconds": 1, "causes": causes})
    if match == "Exact" and wanted != plane.versions.current:
        raise expired(f"The provided resource version is too old: {wanted} (current {plane.versions.current})")
