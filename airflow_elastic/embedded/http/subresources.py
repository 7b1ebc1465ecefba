"""status, scale, binding, eviction, log, finalize."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_elastic.embedded.http import writing
from airflow_elastic.embedded.http.logs import serve_log
from airflow_elastic.embedded.http.reading import render
from airflow_elastic.embedded.http.request import Request
from airflow_elastic.embedded.http.status import ApiError, bad_request, conflict, status_object, unsupported
from airflow_elastic.embedded.http.target import Target, existing
from airflow_elastic.embedded.patch import apply_patch, decode_patch
from airflow_elastic.embedded.registry.writer import DeleteOptions
from airflow_elastic.embedded.store.entry import Entry, encode
from airflow_elastic.embedded.types import Object

if TYPE_CHECKING:
    from airflow_elastic.embedded.plane import ControlPlane

__all__ = ["answer"]

_LEFT_OUT = {
    "attach": "attach",
    "portforward": "port forwarding",
    "proxy": "proxying",
    "ephemeralcontainers": "ephemeral containers",
    "resize": "resizing pods in place",
    "token": "service account tokens",
}


async def answer(plane: ControlPlane, request: Request, target: Target) -> tuple[int, bytes] | None:
    """Answer a request on a subresource."""
    name = target.subresource
    if name in _LEFT_OUT:
        raise unsupported(_LEFT_OUT[name], "use pods with commands, their logs and exec")
    if name not in {sub[0] for sub in target.resource.subresources}:
        raise ApiError(404, "NotFound", "the server could not find the requested resource")
    entry = existing(plane.store(target.resource.store_key).get(target.key), target)
    if name == "status":
        return _status(plane, request, target, entry)
    if name == "scale":
        return _scale(plane, request, target, entry)
    if name == "log" and request.method == "GET":
        await serve_log(plane, request, entry)
        return None
    if name == "binding" and request.method == "POST":
        return _bind(plane, request, target, entry)
    if name == "eviction" and request.method == "POST":
        return _evict(plane, request, target, entry)
    if name == "exec":
        raise bad_request(
            "Upgrade request required: exec is served over WebSocket (v4.channel.k8s.io, v5.channel.k8s.io)"
        )
    raise ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def _status(plane: ControlPlane, request: Request, target: Target, entry: Entry) -> tuple[int, bytes]:
    if request.method == "GET":
        return 200, render(plane, request, target.resource, entry)
    if request.method == "PUT":
        return writing.replace(plane, request, target, "status")
    if request.method == "PATCH":
        return writing.patch(plane, request, target, "status")
    raise ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def _scale_object(entry: Entry) -> Object:
    metadata, spec, status = entry.obj["metadata"], entry.obj["spec"], entry.obj["status"]
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in ("name", "uid", "resourceVersion", "creationTimestamp")},
        "spec": {"replicas": spec["replicas"]},
        "status": {"replicas": status["replicas"], "selector": status["selector"]},
    }


def _scale(plane: ControlPlane, request: Request, target: Target, entry: Entry) -> tuple[int, bytes]:
    if request.method == "GET":
        return 200, encode(_scale_object(entry))
    if request.method == "PUT":
        wanted = request.object()
    elif request.method == "PATCH":
        content_type = request.header(b"content-type").partition(";")[0].strip()
        shown = _scale_object(entry)
        del shown["metadata"]["resourceVersion"]
        wanted = apply_patch(content_type, shown, decode_patch(content_type, request.body), builtin=False)
    else:
        raise ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    version = (wanted.get("metadata") or {}).get("resourceVersion")
    if version and version != entry.obj["metadata"]["resourceVersion"]:
        raise conflict(target.resource.plural, target.resource.group, target.name)
    replicas = (wanted.get("spec") or {}).get("replicas", 0)
    plane.user_agent = request.header(b"user-agent")
    changed = {
        **entry.obj,
        "metadata": dict(entry.obj["metadata"]),
        "spec": {**entry.obj["spec"], "replicas": replicas},
    }
    stored = plane.writer.replace(target.resource, entry, changed, dry_run=request.dry_run)
    return 200, encode(_scale_object(stored))


def _bind(plane: ControlPlane, request: Request, target: Target, entry: Entry) -> tuple[int, bytes]:
    node = (request.object().get("target") or {}).get("name")
    if not node:
        raise bad_request("a Binding needs target.name, the node's name")
    if entry.obj["spec"].get("nodeName"):
        why = f'pod {target.name} is already assigned to node "{entry.obj["spec"]["nodeName"]}"'
        raise conflict("pods/binding", "", target.name, why)
    if entry.obj["spec"].get("schedulingGates"):
        raise conflict("pods/binding", "", target.name, f"pod {target.name} has non-empty .spec.schedulingGates")
    plane.scheduler.bind(entry, node)
    return 201, encode(status_object(201, "", ""))


def _evict(plane: ControlPlane, request: Request, target: Target, entry: Entry) -> tuple[int, bytes]:
    body = request.object()
    options = DeleteOptions.of(body.get("deleteOptions") or {}, request.query)
    plane.pod_deletion.evict(entry, options)
    return 201, encode(status_object(201, "", ""))
