"""What clients ask before anything else: versions, health, groups, resources, OpenAPI."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from airflow_elastic.embedded.http import openapi
from airflow_elastic.embedded.http.request import Request
from airflow_elastic.embedded.http.status import ApiError
from airflow_elastic.embedded.registry.resources import ALL, GROUPS, Resource, preferred_version
from airflow_elastic.embedded.store.entry import encode
from airflow_elastic.embedded.types import Object

if TYPE_CHECKING:
    from airflow_elastic.embedded.plane import ControlPlane

__all__ = ["answer"]

_HEALTH = frozenset({"healthz", "readyz", "livez"})


async def answer(plane: ControlPlane, request: Request) -> tuple[int, bytes] | None:
    """Answer a path that is no resource."""
    parts = request.parts
    if request.method not in ("GET", "HEAD"):
        raise ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    if parts and parts[0] in _HEALTH:
        await _plain(request, b"ok")
        return None
    if parts == ["version"]:
        return 200, encode(_version(plane.config.kubernetes_version))
    if not parts:
        paths = ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"]
        return 200, encode({"paths": paths + [f"/apis/{group}" for group in GROUPS if group]})
    if parts[0] == "openapi":
        return openapi.answer(parts)
    if parts == ["api"]:
        address = {"clientCIDR": "0.0.0.0/0", "serverAddress": plane.address}
        return 200, encode({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]})
    if parts == ["apis"]:
        groups = [_group(group) for group in GROUPS if group]
        return 200, encode({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
    if parts[0] == "apis" and len(parts) == 2 and parts[1] in GROUPS:
        return 200, encode({"kind": "APIGroup", "apiVersion": "v1", **_group(parts[1])})
    if parts[0] == "api" and len(parts) == 2 and parts[1] in GROUPS[""]:
        return 200, encode(_resource_list("", parts[1]))
    if parts[0] == "apis" and len(parts) == 3 and parts[2] in GROUPS.get(parts[1], ()):
        return 200, encode(_resource_list(parts[1], parts[2]))
    raise ApiError(404, "NotFound", "the server could not find the requested resource")


async def _plain(request: Request, body: bytes) -> None:
    headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(body)).encode())]
    await request.send({"type": "http.response.start", "status": 200, "headers": headers})
    await request.send({"type": "http.response.body", "body": body})


def _version(text: str) -> Object:
    major, minor, *_ = text.lstrip("v").split(".")
    return {
        "major": major,
        "minor": minor,
        "gitVersion": text,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "airflow-elastic embedded cluster",
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }


def _group(group: str) -> Object:
    versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in GROUPS[group]]
    preferred = preferred_version(group)
    return {
        "name": group,
        "versions": versions,
        "preferredVersion": {"groupVersion": f"{group}/{preferred}", "version": preferred},
    }


def _resource_list(group: str, version: str) -> Object:
    listed: list[Object] = []
    for resource in ALL:
        if resource.group == group and resource.version == version:
            listed.append(_describe(resource))
            listed.extend(_describe_subresource(resource, *sub) for sub in resource.subresources)
    group_version = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": listed}


def _describe(resource: Resource) -> Object:
    described: Object = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        described["shortNames"] = list(resource.short_names)
    if resource.categories:
        described["categories"] = list(resource.categories)
    return described


def _describe_subresource(resource: Resource, name: str, kind: str, verbs: tuple[str, ...]) -> Object:
    described: Object = {
        "name": f"{resource.plural}/{name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": kind,
        "verbs": list(verbs),
    }
    if kind == "Eviction":
        described |= {"group": "policy", "version": "v1"}
    if kind == "Scale":
        described |= {"group": "autoscaling", "version": "v1"}
    return described
