"""Mechanisms that bring and remove nodes: one protocol (``base``), one conformance suite (``airflow_elastic.testing``).

``make_provider`` picks one by the name in the capacity file. A provider knows the Kubernetes API and its own mechanism,
and neither the planner nor Airflow.
"""

from __future__ import annotations

from airflow_elastic.errors import ConfigurationError
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.providers.base import ClusterCalls, Provider

__all__ = ["BUILT_IN", "make_provider"]

BUILT_IN = ("placeholder", "scale", "none")


def make_provider(pool: NodePool, api: ClusterCalls, namespace: str) -> Provider:
    """Return the provider of a node pool.

    Raises:
        ConfigurationError: an unknown provider, or its options are incomplete.
    """
    if pool.provider == "placeholder":
        from airflow_elastic.providers.placeholder import PlaceholderProvider

        return PlaceholderProvider(pool, api, namespace)
    if pool.provider == "scale":
        from airflow_elastic.providers.scale import ScaleProvider

        return ScaleProvider(pool, api)
    if pool.provider in ("none", ""):
        from airflow_elastic.providers.none import NoProvider

        return NoProvider(pool)
    raise ConfigurationError(
        f"node pool {pool.name!r} names the provider {pool.provider!r}; known are {', '.join(BUILT_IN)}"
    )
