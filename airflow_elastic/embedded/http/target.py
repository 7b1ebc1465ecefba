"""From a path to a resource, a namespace, a name and a subresource."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_elastic.embedded.http.status import ApiError, not_found
from airflow_elastic.embedded.registry.resources import BY_PATH, Resource
from airflow_elastic.embedded.store.entry import Entry
from airflow_elastic.embedded.types import Key

__all__ = ["Target", "find_target", "missing"]


@dataclass(slots=True)
class Target:
    """What a request is about."""

    resource: Resource
    namespace: str
    name: str
    subresource: str

    @property
    def key(self) -> Key:
        """Return the object's key."""
        return (self.namespace, self.name)


def find_target(parts: list[str]) -> Target | None:
    """Return what a path below /api or /apis means; None for a resource that is not served."""
    if parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    else:
        group, version, rest = parts[1], parts[2], parts[3:]
    namespace = ""
    # /namespaces/NAME, /namespaces/NAME/status and /namespaces/NAME/finalize are about the namespace itself.
    if rest[0] == "namespaces" and len(rest) >= 3 and not (not group and rest[2] in ("status", "finalize")):
        namespace, rest = rest[1], rest[2:]
    resource = BY_PATH.get((group, version, rest[0]))
    if resource is None or len(rest) > 3 or (namespace and not resource.namespaced):
        return None
    if rest[0] == "watch":
        raise ApiError(404, "NotFound", "the path /watch was removed from Kubernetes; use the query watch=true")
    return Target(resource, namespace, rest[1] if len(rest) > 1 else "", rest[2] if len(rest) > 2 else "")


def missing(target: Target) -> ApiError:
    """Return 404 for the target."""
    return not_found(target.resource.plural, target.resource.group, target.name)


def existing(entry: Entry | None, target: Target) -> Entry:
    """Return the entry.

    Raises:
        ApiError: 404 if there is none.
    """
    if entry is None:
        raise missing(target)
    return entry


__all__ += ["existing"]
