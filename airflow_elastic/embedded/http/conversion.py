"""Objects that the API shows in another form than they are stored in: events of both API groups, reviews."""

from __future__ import annotations

from airflow_elastic.embedded.registry.resources import Resource
from airflow_elastic.embedded.types import Object

__all__ = ["review", "to_shown", "to_stored"]


def to_stored(resource: Resource, obj: Object) -> Object:
    """Return an events.k8s.io event in the form of core/v1 (the creation rules move the fields)."""
    return {**obj, "apiVersion": resource.api_version} if obj else obj


def to_shown(resource: Resource, obj: Object) -> Object:
    """Return a stored event as events.k8s.io/v1 shows it."""
    shown = {key: value for key, value in obj.items() if key not in ("involvedObject", "message", "source")}
    shown["apiVersion"] = resource.api_version
    if not shown.get("eventTime") and shown.get("firstTimestamp"):
        # Required by this API version's readers; the older one has whole seconds only.
        shown["eventTime"] = shown["firstTimestamp"].replace("Z", ".000000Z")
    shown["regarding"] = obj["involvedObject"]
    shown["note"] = obj.get("message", "")
    shown["reportingController"] = shown.pop("reportingComponent", "")
    for new, old in (("deprecatedCount", "count"), ("deprecatedFirstTimestamp", "firstTimestamp")):
        shown[new] = shown.pop(old, None)
    shown["deprecatedLastTimestamp"] = shown.pop("lastTimestamp", None)
    shown["deprecatedSource"] = obj.get("source") or {}
    return shown


def review(resource: Resource, obj: Object) -> Object:
    """Answer an access review: everything is allowed, the cluster belongs to whoever reaches it."""
    answer = {**obj, "apiVersion": resource.api_version, "kind": resource.kind}
    answer.setdefault("metadata", {"creationTimestamp": None})
    if resource.kind == "SelfSubjectReview":
        answer["status"] = {"userInfo": {"username": "embedded-admin", "groups": ["system:masters"]}}
    else:
        answer["status"] = {"allowed": True, "reason": "the embedded cluster allows everything"}
    return answer
