"""Requests of pods as kube-scheduler counts them, and times as the API writes them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from airflow_elastic.model.resources import CPU, MEMORY, PODS, Resources, parse_quantity

__all__ = ["amounts_of", "pod_requests", "unix_seconds"]


@lru_cache(maxsize=8192)
def unix_seconds(text: str | None) -> float | None:
    """Return an API timestamp (``2026-01-01T00:00:00Z``, with or without fraction) as Unix seconds; None for none."""
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, TypeError):
        return None


def amounts_of(quantities: Mapping[str, Any] | None) -> Resources:
    """Return quantities as amounts; what cannot be read counts as nothing (the API server would have refused it)."""
    return _resources(tuple(sorted((str(key), str(text)) for key, text in (quantities or {}).items())))


def pod_requests(spec: Mapping[str, Any]) -> Resources:
    """Return what a pod takes on a node, ``pods: 1`` included.

    The larger of: all containers with the sidecars (init containers that restart always); each other init container
    with the sidecars that were started before it. Pod-level requests replace the sum for their resources; overhead is
    added.
    """
    total = _sum(_container_requests(each) for each in spec.get("containers") or ())
    sidecars: dict[str, int] = {}
    start_up: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        requests = _container_requests(container)
        if container.get("restartPolicy") == "Always":
            sidecars = _sum((sidecars.items(), requests))
            peak = sidecars
        else:
            peak = _sum((sidecars.items(), requests))
        for name, amount in peak.items():
            start_up[name] = max(start_up.get(name, 0), amount)
    total = _sum((total.items(), sidecars.items()))
    for name, amount in start_up.items():
        total[name] = max(total.get(name, 0), amount)
    pod_level = (spec.get("resources") or {}).get("requests")
    if pod_level:
        total.update({name: amount for name, amount in amounts_of(pod_level).amounts if name in (CPU, MEMORY)})
    if spec.get("overhead"):
        total = _sum((total.items(), amounts_of(spec["overhead"]).amounts))
    total[PODS] = 1
    return _interned(tuple(sorted((name, amount) for name, amount in total.items() if amount)))


def _container_requests(container: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    resources = container.get("resources") or {}
    requests = resources.get("requests")
    limits = resources.get("limits")
    if not requests and not limits:
        return ()
    # The API server copies limits into missing requests; a server that does not is counted the same.
    return amounts_of({**(limits or {}), **(requests or {})}).amounts


def _sum(parts: Iterable[Iterable[tuple[str, int]]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for name, amount in part:
            total[name] = total.get(name, 0) + amount
    return total


@lru_cache(maxsize=8192)
def _resources(quantities: tuple[tuple[str, str], ...]) -> Resources:
    amounts = {}
    for name, text in quantities:
        try:
            amounts[name] = parse_quantity(text, resource=name)
        except ValueError:
            continue
    return Resources.of(amounts)


@lru_cache(maxsize=8192)
def _interned(amounts: tuple[tuple[str, int], ...]) -> Resources:
    # Thousands of pods ask for a handful of shapes: one object each keeps the view small.
    return Resources(amounts)
