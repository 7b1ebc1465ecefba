"""What a pod asks of a node, by Kubernetes' own arithmetic.

Works on Kubernetes client objects and on plain dicts alike, by attribute or key, so that nothing has to be imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from airflow_elastic.model.resources import NO_RESOURCES, Resources, parse_quantity

__all__ = ["container_requests", "field_of", "larger_of", "pod_requests"]


def field_of(thing: object, name: str) -> Any:
    """Return a field by its snake_case name from a client object, or from a dict in either notation; None if absent."""
    if isinstance(thing, Mapping):
        head, *rest = name.split("_")
        camel = head + "".join(part.title() for part in rest)
        return thing[camel] if camel in thing else thing.get(name)
    return getattr(thing, name, None)


def larger_of(one: Resources, other: Resources) -> Resources:
    """Return the larger amount of each resource."""
    return Resources.of({name: max(one.get(name), other.get(name)) for name in {*one.names, *other.names}})


def container_requests(resources: object, default: Resources = NO_RESOURCES) -> Resources:
    """Return the requests of one container from its ``resources``.

    A limit without a request is the request, as the API server has it. A quantity that cannot be read yet (a template,
    another task's result) counts as in ``default``; so does a container that states nothing at all.
    """
    requests, limits = field_of(resources, "requests"), field_of(resources, "limits")
    stated = {
        **(limits if isinstance(limits, Mapping) else {}),
        **(requests if isinstance(requests, Mapping) else {}),
    }
    if not stated:
        return default
    amounts: dict[str, int] = {}
    for name, quantity in stated.items():
        try:
            amounts[str(name)] = parse_quantity(quantity, resource=str(name))
        except (ValueError, TypeError):
            amounts[str(name)] = default.get(str(name))
    return Resources.of(amounts)


def pod_requests(
    containers: Iterable[object],
    init_containers: Iterable[object] = (),
    *,
    overhead: object = None,
    pod_level: object = None,
    default: Resources = NO_RESOURCES,
) -> Resources:
    """Return what the scheduler reserves for a pod.

    Containers run together and add up; init containers run one by one before them, so only the largest counts; an init
    container that restarts always is a sidecar and runs beside everything after it. ``default`` stands for the first
    container where it states nothing. Amounts as in ``Resources``; the pod itself (``pods: 1``) is not included.
    """
    together = NO_RESOURCES
    for index, container in enumerate(containers):
        together += container_requests(field_of(container, "resources"), default if index == 0 else NO_RESOURCES)
    sidecars, while_starting = NO_RESOURCES, NO_RESOURCES
    for container in init_containers:
        asked = container_requests(field_of(container, "resources"))
        if field_of(container, "restart_policy") == "Always":
            sidecars += asked
            while_starting = larger_of(while_starting, sidecars)
        else:
            while_starting = larger_of(while_starting, sidecars + asked)
    total = larger_of(together + sidecars, while_starting)
    stated = container_requests(pod_level)
    if stated.amounts:
        total = Resources.of({**dict(total.amounts), **dict(stated.amounts)})
    return total + container_requests({"requests": overhead} if overhead else None)
