"""Reading container logs, as a whole or following."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from airflow_elastic.embedded import timestamps
from airflow_elastic.embedded.http.request import Receive, Request
from airflow_elastic.embedded.http.status import bad_request, not_found
from airflow_elastic.embedded.store.entry import Entry
from airflow_elastic.embedded.types import Object

if TYPE_CHECKING:
    from airflow_elastic.embedded.kubelet.logs import ContainerLog
    from airflow_elastic.embedded.plane import ControlPlane

__all__ = ["serve_log"]


async def serve_log(plane: ControlPlane, request: Request, entry: Entry) -> None:
    """Send a container's log; with ``follow`` until the container ends.

    Raises:
        ApiError: 400 while the container waits, or for a container that the pod does not have.
    """
    pod = entry.obj
    name = _container_name(request, pod)
    if not pod["spec"].get("nodeName"):
        # There is no kubelet to ask yet.
        await request.send({"type": "http.response.start", "status": 204, "headers": []})
        await request.send({"type": "http.response.body", "body": b""})
        return
    log = plane.kubelet.log_of(entry.uid, name)
    if log is None:
        raise _no_log(pod, name)
    limit = request.number("limitBytes")
    await request.send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    position = _start(request, log)
    stamped = request.flag("timestamps")
    if not request.flag("follow"):
        text, _ = log.read(position, stamped)
        await request.send({"type": "http.response.body", "body": text if limit is None else text[:limit]})
        return
    await _follow(request, log, position, stamped)


async def _follow(request: Request, log: ContainerLog, position: int, stamped: bool) -> None:
    """Stream lines until the container ends or the reader leaves."""
    changed = asyncio.Event()
    log.followers.add(changed)
    left = asyncio.get_running_loop().create_task(_set_on_disconnect(request.receive, changed))
    try:
        while not left.done():
            changed.clear()
            closed = log.closed
            text, position = log.read(position, stamped)
            if text:
                await request.send({"type": "http.response.body", "body": text, "more_body": True})
            if closed:
                break
            await changed.wait()
        await request.send({"type": "http.response.body", "body": b""})
    finally:
        log.followers.discard(changed)
        left.cancel()


def _container_name(request: Request, pod: Object) -> str:
    spec = pod["spec"]
    names: list[str] = [container["name"] for container in (*(spec.get("initContainers") or ()), *spec["containers"])]
    name: str = request.query.get("container", "")
    where = pod["metadata"]["name"]
    if not name:
        if len(names) > 1:
            raise bad_request(f"a container name must be specified for pod {where}, choose one of: [{' '.join(names)}]")
        return names[0]
    if name not in names:
        raise bad_request(f"container {name} is not valid for pod {where}")
    return name


def _no_log(pod: Object, name: str) -> Exception:
    where = pod["metadata"]["name"]
    reason = "ContainerCreating"
    status = pod["status"]
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        waiting = (container.get("state") or {}).get("waiting")
        if container["name"] == name and waiting:
            reason = waiting.get("reason", reason)
        elif container["name"] == name:
            return not_found("pods/log", "", f"{where}/{name}: the node that held the log is gone")
    return bad_request(f'container "{name}" in pod "{where}" is waiting to start: {reason}')


def _start(request: Request, log: ContainerLog) -> int:
    position = log.first
    since_seconds, since_time = request.number("sinceSeconds"), request.query.get("sinceTime")
    if since_seconds is not None:
        position = log.position_at(time.time() - since_seconds)
    elif since_time:
        try:
            position = log.position_at(timestamps.parse(since_time))
        except ValueError:
            raise bad_request(f"sinceTime {since_time!r} is not a time") from None
    tail = request.number("tailLines")
    if tail is not None:
        position = max(position, log.end - max(0, tail))
    return position


async def _set_on_disconnect(receive: Receive, changed: asyncio.Event) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    changed.set()
