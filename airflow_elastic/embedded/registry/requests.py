"""What a pod asks of a node: requests summed as kube-scheduler sums them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from airflow_elastic.embedded.types import Object
from airflow_elastic.model.resources import parse_quantity

__all__ = ["Amounts", "amounts_of", "pod_limits", "pod_requests", "qos_class", "quantity"]

Amounts = dict[str, int]
"""Millicores for cpu, bytes or pieces for everything else."""


@lru_cache(maxsize=4096)
def quantity(text: str | int | float, resource: str) -> int:
    """Return one quantity as an integer.

    Raises:
        ValueError: not a Kubernetes quantity.
    """
    return parse_quantity(text, resource=resource)


def amounts_of(quantities: dict[str, Any] | None) -> Amounts:
    """Return a resource list (requests, allocatable) as integers."""
    return {name: quantity(text, name) for name, text in (quantities or {}).items()}


def _container_requests(container: Object) -> Amounts:
    resources = container.get("resources")
    if not resources:
        return {}
    # A limit without a request counts as the request, as the API server defaults it.
    return amounts_of({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def pod_requests(spec: Object) -> Amounts:
    """Return the pod's effective requests, one of ``pods`` included.

    The largest init container and the sum of the containers compete; sidecars (init containers that restart always)
    count to both; overhead is added.
    """
    total: Amounts = {}
    for container in spec["containers"]:
        for name, amount in _container_requests(container).items():
            total[name] = total.get(name, 0) + amount
    init_containers = spec.get("initContainers")
    if init_containers:
        total = _with_init(total, init_containers)
    for name, amount in amounts_of(spec.get("overhead")).items():
        total[name] = total.get(name, 0) + amount
    total["pods"] = 1
    return {name: amount for name, amount in total.items() if amount}


def pod_limits(spec: Object) -> Amounts:
    """Return the sum of the containers' limits."""
    total: Amounts = {}
    for container in spec["containers"]:
        for name, amount in amounts_of((container.get("resources") or {}).get("limits")).items():
            total[name] = total.get(name, 0) + amount
    return total


def _with_init(total: Amounts, init_containers: list[Object]) -> Amounts:
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in init_containers:
        wanted = _container_requests(container)
        if container.get("restartPolicy") == "Always":
            for name, amount in wanted.items():
                sidecars[name] = sidecars.get(name, 0) + amount
            wanted = {}
        for name in wanted.keys() | sidecars.keys():
            peak[name] = max(peak.get(name, 0), wanted.get(name, 0) + sidecars.get(name, 0))
    names = total.keys() | sidecars.keys() | peak.keys()
    return {name: max(total.get(name, 0) + sidecars.get(name, 0), peak.get(name, 0)) for name in names}


def qos_class(spec: Object) -> str:
    """Return the pod's quality-of-service class."""
    containers = [*spec["containers"], *(spec.get("initContainers") or ())]
    guaranteed, any_asked = True, False
    for container in containers:
        resources = container.get("resources") or {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        any_asked = any_asked or bool(limits or requests)
        for name in ("cpu", "memory"):
            if name not in limits or quantity(requests.get(name, limits[name]), name) != quantity(limits[name], name):
                guaranteed = False
    if guaranteed:
        return "Guaranteed"
    return "Burstable" if any_asked else "BestEffort"
