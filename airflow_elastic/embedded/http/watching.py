"""Watch streams: what was, what changes, bookmarks, and the end."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from airflow_elastic.embedded.http import tables
from airflow_elastic.embedded.http.conversion import to_shown
from airflow_elastic.embedded.http.request import Receive, Request
from airflow_elastic.embedded.http.status import expired, invalid
from airflow_elastic.embedded.http.target import Target
from airflow_elastic.embedded.registry.resources import Resource
from airflow_elastic.embedded.selectors import Selection
from airflow_elastic.embedded.store.collection import Collection, Gone
from airflow_elastic.embedded.store.entry import Entry, encode
from airflow_elastic.embedded.store.watcher import FrameEncoder, Watcher

if TYPE_CHECKING:
    from airflow_elastic.embedded.plane import ControlPlane

__all__ = ["serve_watch"]

_BOOKMARK_SECONDS = 60.0
# A watch without timeoutSeconds lasts between these, as on a real API server.
_DEFAULT_TIMEOUT = (1800.0, 3600.0)


async def serve_watch(plane: ControlPlane, request: Request, target: Target, selection: Selection) -> None:
    """Stream changes until the client leaves, the time is over or the cluster stops."""
    _check_initial_events(request)
    collection = plane.store(target.resource.store_key)
    watcher = Watcher(selection, _frame_encoder(request, target.resource))
    bookmarks = request.flag("allowWatchBookmarks")
    loop = asyncio.get_running_loop()
    timeout = request.number("timeoutSeconds")
    seconds = float(timeout) if timeout else random.uniform(*_DEFAULT_TIMEOUT)
    await request.send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]}
    )
    # From here to the first wait nothing else runs, so no change falls between the log and the live watch.
    _queue_start(plane, request, target, collection, watcher)
    collection.add_watcher(watcher)
    gone = loop.create_task(_close_on_disconnect(request.receive, watcher))
    ends = loop.call_later(seconds, watcher.close)
    ticker = loop.create_task(_bookmark(plane, target.resource, watcher)) if bookmarks else None
    plane.open_watches.add(watcher)
    try:
        await request.send({"type": "http.response.body", "body": watcher.take(), "more_body": True})
        while not watcher.closed:
            await watcher.wait()
            await request.send({"type": "http.response.body", "body": watcher.take(), "more_body": True})
        await request.send({"type": "http.response.body", "body": b""})
    finally:
        plane.open_watches.discard(watcher)
        collection.drop_watcher(watcher)
        ends.cancel()
        gone.cancel()
        if ticker is not None:
            ticker.cancel()


def _check_initial_events(request: Request) -> None:
    """Refuse a combination of parameters that means nothing.

    Raises:
        ApiError: 422.
    """
    initial = request.query.get("sendInitialEvents", "")
    match = request.query.get("resourceVersionMatch", "")
    causes = []
    if match and not initial:
        causes.append(("resourceVersionMatch", "Forbidden: resourceVersionMatch is forbidden for watch"))
    if initial and match != "NotOlderThan":
        rule = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        causes.append(("resourceVersionMatch", rule))
    if causes:
        raise invalid("ListOptions", "meta.k8s.io", "", causes)


def _queue_start(
    plane: ControlPlane, request: Request, target: Target, collection: Collection, watcher: Watcher
) -> None:
    """Queue what the client has not seen: everything, or the log after its version."""
    version = request.number("resourceVersion") or 0
    wants_initial = request.query.get("sendInitialEvents", "").lower()
    if version and wants_initial != "true":
        try:
            if version > plane.versions.current:
                # A version of another cluster's life: everything has to be listed again.
                raise Gone
            for change in collection.changes_after(version):
                if not target.namespace or change.entry.key[0] == target.namespace:
                    watcher.offer(change)
        except Gone:
            error = expired(f"too old resource version: {version} ({plane.versions.current})")
            watcher.push(b'{"type":"ERROR","object":' + encode(error.as_object()) + b"}\n")
            watcher.close()
        return
    if wants_initial != "false":
        for entry in collection.entries(target.namespace):
            if watcher.selection.matches(entry.obj):
                watcher.push_entry("ADDED", entry)
    if wants_initial == "true":
        watcher.push(_bookmark_frame(plane, target.resource, initial_end=True))


def _frame_encoder(request: Request, resource: Resource) -> FrameEncoder | None:
    accept = request.header(b"accept")
    if "as=Table" in accept:
        include = request.query.get("includeObject", "")

        def table_frame(type_: str, entry: Entry) -> bytes:
            return _frame(type_, encode(tables.table(resource, [entry], str(entry.version), include)))

        return table_frame
    if "as=PartialObjectMetadata" in accept:
        return lambda type_, entry: _frame(type_, encode(tables.partial(entry.obj)))
    if resource.stored_as:
        return lambda type_, entry: _frame(type_, encode(to_shown(resource, entry.obj)))
    return None


def _frame(type_: str, body: bytes) -> bytes:
    return b'{"type":"' + type_.encode() + b'","object":' + body + b"}\n"


def _bookmark_frame(plane: ControlPlane, resource: Resource, *, initial_end: bool = False) -> bytes:
    metadata: dict[str, object] = {"resourceVersion": str(plane.versions.current), "creationTimestamp": None}
    if initial_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    body = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
    return _frame("BOOKMARK", encode(body))


async def _bookmark(plane: ControlPlane, resource: Resource, watcher: Watcher) -> None:
    while not watcher.closed:
        await asyncio.sleep(_BOOKMARK_SECONDS)
        watcher.push(_bookmark_frame(plane, resource))


async def _close_on_disconnect(receive: Receive, watcher: Watcher) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    watcher.close()
