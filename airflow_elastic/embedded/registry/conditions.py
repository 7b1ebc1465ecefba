"""Conditions of pods and nodes as copy-on-write lists."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_elastic.embedded import timestamps
from airflow_elastic.embedded.types import Object

__all__ = ["condition", "find_condition", "pod_with_condition", "with_condition"]


def condition(type_: str, status: str, reason: str = "", message: str = "") -> Object:
    """Return a pod condition as of now."""
    made: Object = {"type": type_, "status": status, "lastProbeTime": None, "lastTransitionTime": timestamps.now()}
    if reason:
        made["reason"] = reason
    if message:
        made["message"] = message
    return made


def find_condition(obj: Object, type_: str) -> Object | None:
    """Return the condition of a type."""
    for entry in obj["status"].get("conditions") or ():
        if entry["type"] == type_:
            return dict(entry)
    return None


def with_condition(conditions: Iterable[Object], new: Object) -> list[Object]:
    """Return the conditions with one replaced or added; the transition time stays when the status does."""
    result = []
    placed = False
    for old in conditions:
        if old["type"] != new["type"]:
            result.append(old)
            continue
        if old["status"] == new["status"]:
            new = {**new, "lastTransitionTime": old["lastTransitionTime"]}
        result.append(new)
        placed = True
    if not placed:
        result.append(new)
    return result


def pod_with_condition(pod: Object, new: Object) -> Object:
    """Return a pod that carries the condition; shares everything else. The metadata is a fresh dictionary."""
    status = pod["status"]
    return {
        **pod,
        "metadata": dict(pod["metadata"]),
        "status": {**status, "conditions": with_condition(status.get("conditions") or (), new)},
    }
