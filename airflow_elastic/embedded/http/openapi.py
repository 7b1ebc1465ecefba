"""The least of OpenAPI v3 that kubectl wants: which parameters a PATCH of each kind takes."""

from __future__ import annotations

from functools import lru_cache

from airflow_elastic.embedded.http.status import ApiError
from airflow_elastic.embedded.registry.resources import ALL, GROUPS, Resource
from airflow_elastic.embedded.store.entry import encode
from airflow_elastic.embedded.types import Object

__all__ = ["answer"]


def answer(parts: list[str]) -> tuple[int, bytes]:
    """Answer a path below /openapi.

    Raises:
        ApiError: 404; OpenAPI v2 is not served.
    """
    if parts[:2] == ["openapi", "v3"]:
        if len(parts) == 2:
            return 200, _index()
        where = "/".join(parts[2:])
        if where in _group_paths():
            return 200, _document(where)
    raise ApiError(404, "NotFound", "the server could not find the requested resource")


def _group_paths() -> list[str]:
    return [f"apis/{group}/{v}" if group else f"api/{v}" for group, versions in GROUPS.items() for v in versions]


@lru_cache(maxsize=1)
def _index() -> bytes:
    return encode({"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}"} for path in _group_paths()}})


@lru_cache(maxsize=64)
def _document(where: str) -> bytes:
    parts = where.split("/")
    group, version = ("", parts[1]) if parts[0] == "api" else (parts[1], parts[2])
    resources = [r for r in ALL if r.group == group and r.version == version]
    schemas = {_schema_name(resource): _schema(resource) for resource in resources}
    paths = {_item_path(resource): {"patch": _patch(resource)} for resource in resources}
    document = {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "embedded"},
        "paths": paths,
        "components": {"schemas": schemas},
    }
    return encode(document)


def _item_path(resource: Resource) -> str:
    base = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    return (
        f"{base}/namespaces/{{namespace}}/{resource.plural}/{{name}}"
        if resource.namespaced
        else f"{base}/{resource.plural}/{{name}}"
    )


def _schema_name(resource: Resource) -> str:
    return f"io.k8s.api.{(resource.group or 'core').split('.')[0]}.{resource.version}.{resource.kind}"


def _kinds(resource: Resource) -> list[Object]:
    return [{"group": resource.group, "version": resource.version, "kind": resource.kind}]


def _schema(resource: Resource) -> Object:
    return {
        "type": "object",
        "x-kubernetes-group-version-kind": _kinds(resource),
        "x-kubernetes-preserve-unknown-fields": True,
    }


def _patch(resource: Resource) -> Object:
    parameters = [
        {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
        for name in ("dryRun", "fieldManager", "fieldValidation", "force")
    ]
    return {
        "parameters": parameters,
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": _kinds(resource)[0],
    }
