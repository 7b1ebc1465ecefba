"""JSON merge patch (RFC 7386)."""

from __future__ import annotations

from airflow_elastic.embedded.types import Object

__all__ = ["merge_patch"]


def merge_patch(target: Object, patch: Object) -> Object:
    """Merge a patch into the target, in place; null removes a key."""
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            present = target.get(key)
            target[key] = merge_patch(present if isinstance(present, dict) else {}, value)
        else:
            target[key] = value
    return target
