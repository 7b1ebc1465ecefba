"""Airflow's JSON encoding of values (``{"__type": …, "__var": …}``), read without Airflow's own deserialisers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["decoded", "literal_width"]

_DEEPEST = 40
_LISTS = frozenset({"tuple", "set", "frozenset"})


def decoded(value: Any, depth: int = 0) -> Any:
    """Return the plain value: dicts, lists, strings, numbers. Dates come as Unix seconds; what is neither is None."""
    if depth > _DEEPEST:
        return None
    if isinstance(value, list):
        return [decoded(each, depth + 1) for each in value]
    if not isinstance(value, Mapping):
        return value
    if "__type" not in value:
        return {str(name): decoded(each, depth + 1) for name, each in value.items()}
    inner = value.get("__var")
    if value["__type"] == "dict" and isinstance(inner, Mapping):
        return {str(name): decoded(each, depth + 1) for name, each in inner.items()}
    if value["__type"] in _LISTS and isinstance(inner, list):
        return [decoded(each, depth + 1) for each in inner]
    return inner if isinstance(inner, str | int | float | bool) else None


def literal_width(expand_input: object) -> int | None:
    """Return how many instances an encoded ``expand`` or ``expand_kwargs`` makes; None where only a run can tell."""
    if not isinstance(expand_input, Mapping):
        return None
    value = _unwrapped(expand_input.get("value"))
    if expand_input.get("type") == "list-of-dicts":
        return len(value) if isinstance(value, list) else None
    if not isinstance(value, Mapping):
        return None
    width = 1
    for each in value.values():
        items = _unwrapped(each)
        if not isinstance(items, list | dict):
            return None
        width *= len(items)
    return width


def _unwrapped(value: Any) -> Any:
    """Return what a container's encoding wraps; None for anything that is a reference (XCom and the like)."""
    if isinstance(value, Mapping) and "__type" in value:
        return value.get("__var") if value["__type"] in _LISTS | {"dict"} else None
    return value
