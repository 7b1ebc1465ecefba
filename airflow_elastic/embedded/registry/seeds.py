"""Objects that every cluster has from the start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_elastic.embedded.registry.resources import BY_PATH

if TYPE_CHECKING:
    from airflow_elastic.embedded.plane import ControlPlane

__all__ = ["plant"]

_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_PRIORITIES = (("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000))


def plant(plane: ControlPlane) -> None:
    """Make namespaces (their service accounts come with them), and the system's priority classes."""
    namespaces = BY_PATH["", "v1", "namespaces"]
    classes = BY_PATH["scheduling.k8s.io", "v1", "priorityclasses"]
    for name in dict.fromkeys((*_NAMESPACES, *plane.config.namespaces)):
        plane.writer.create(namespaces, "", {"metadata": {"name": name}})
    for name, value in _PRIORITIES:
        description = "Used for system critical pods that must run in the cluster."
        plane.writer.create(classes, "", {"metadata": {"name": name}, "value": value, "description": description})
