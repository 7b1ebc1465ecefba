"""What an entry of the capacity file means where it says nothing and a plain default does not do."""

from __future__ import annotations

from airflow_elastic.model.resources import PODS, Resources

__all__ = ["DEFAULT_PODS_PER_NODE", "with_pods"]

DEFAULT_PODS_PER_NODE = 110
"""The kubelet's own default, for a shape that says nothing of pods."""


def with_pods(shape: Resources) -> Resources:
    """Return a node's shape with a number of pods: without one no pod would fit on it."""
    return shape if shape.get(PODS) else shape + Resources.of({PODS: DEFAULT_PODS_PER_NODE})
