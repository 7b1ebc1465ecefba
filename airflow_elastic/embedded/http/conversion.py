"""Objects that the API shows in another form than they are stored in: events of both API groups, reviews."""

from __future__ import annotations

from airflow_elastic.embedded.registry.resources import BY_PATH, Resource
from airflow_elastic.embedded.types import Object

__all__ = ["review", "stored_form", "to_shown", "to_stored"]

# Names of fields in events.k8s.io/v1, and in core/v1, the form in which events are stored.
_NAMES = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}


def stored_form(resource: Resource) -> Resource:
    """Return the resource in whose form the objects are stored."""
    return BY_PATH["", "v1", resource.stored_as] if resource.stored_as else resource


def to_stored(resource: Resource, obj: Object) -> Object:
    """Return an object in the form in which it is stored."""
    if not resource.stored_as:
        return obj
    stored = {key: value for key, value in obj.items() if key not in _NAMES}
    for shown, name in _NAMES.items():
        if obj.get(shown) is not None:
            stored[name] = obj[shown]
    if obj.get("apiVersion") == resource.api_version:
        stored["apiVersion"] = "v1"
    return stored


def to_shown(resource: Resource, obj: Object) -> Object:
    """Return a stored event as events.k8s.io/v1 shows it."""
    if not resource.stored_as:
        return obj
    hidden = _NAMES.values()
    shown = {key: value for key, value in obj.items() if key not in hidden}
    for new, name in _NAMES.items():
        if name in obj:
            shown[new] = obj[name]
    shown["apiVersion"] = resource.api_version
    if not shown.get("eventTime") and obj.get("firstTimestamp"):
        # Required by this API version's readers; the older one has whole seconds only.
        shown["eventTime"] = obj["firstTimestamp"].replace("Z", ".000000Z")
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
