"""Names for the JSON shapes that travel through the cluster."""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ["Key", "Object"]

Object: TypeAlias = dict[str, Any]
"""A Kubernetes object as decoded JSON. Once stored it is never changed: a change makes new dictionaries on its path."""

Key: TypeAlias = tuple[str, str]
"""Namespace ("" for cluster-scoped objects) and name."""
