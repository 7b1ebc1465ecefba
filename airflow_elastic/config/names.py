"""Checks of names and amounts that become part of Kubernetes or Airflow objects."""

from __future__ import annotations

import re
from collections.abc import Callable

from airflow_elastic.config.values import SeveralWrong, Wrong, shown, suggestion, text
from airflow_elastic.model.labels import PLACEHOLDER_PRIORITY_CLASS
from airflow_elastic.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resources, parse_quantity

__all__ = [
    "airflow_pool",
    "class_name",
    "dns_label",
    "label_key",
    "label_value",
    "node_pool_name",
    "optional_class_name",
    "priority_class",
    "provider_option",
    "resource_name",
    "resources",
    "task_pattern",
]

# Kubernetes' own patterns (k8s.io/apimachinery/pkg/util/validation).
_DNS_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
DNS_SUBDOMAIN = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
QUALIFIED_PART = r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_LABEL_KEY = re.compile(rf"(?:(?P<prefix>{DNS_SUBDOMAIN})/)?(?P<name>{QUALIFIED_PART})")
NODE_POOL_NAME = rf"^{_DNS_LABEL}$"

_CORE_RESOURCES = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)
_ANY_TEXT = "write one line of printable text"

dns_label = text(
    "a Kubernetes namespace",
    longest=63,
    pattern=_DNS_LABEL,
    right="write lower-case letters, digits and '-', such as airflow-tasks",
)
node_pool_name = text(
    "a node pool's name",
    longest=63,
    pattern=_DNS_LABEL,
    right="write lower-case letters, digits and '-' (it becomes part of Kubernetes names), such as spot-large",
)
class_name = text(
    "a capacity class's name",
    longest=63,
    pattern=QUALIFIED_PART,
    right="write letters, digits, '-', '_' and '.' (it becomes a Kubernetes label value), such as burst",
)
optional_class_name = text(
    "a capacity class's name", longest=63, pattern=QUALIFIED_PART, right="name one of the classes, or none", empty=True
)
label_value = text(
    "a Kubernetes label value",
    longest=63,
    pattern=QUALIFIED_PART,
    right="write letters, digits, '-', '_' and '.', at most 63",
    empty=True,
)
task_pattern = text("a pattern", longest=250, right='write a shell pattern such as "billing_*"; "*" matches everything')
provider_option = text("a provider option", longest=253, right=_ANY_TEXT)
_pool_text = text("an Airflow pool's name", longest=256, right=_ANY_TEXT)
_priority_text = text(
    "a PriorityClass's name",
    longest=253,
    pattern=DNS_SUBDOMAIN,
    right="write lower-case letters, digits, '-' and '.', such as batch-high",
    empty=True,
)


def label_key(value: object) -> str:
    """Return a Kubernetes label key (also a taint's key), with or without a DNS prefix."""
    right = "write a name of letters, digits, '-', '_' and '.', with or without a prefix such as example.com/"
    if not isinstance(value, str):
        raise Wrong(f"{shown(value)} is not a label key", right)
    match = _LABEL_KEY.fullmatch(value) if len(value) <= 317 else None
    if match is None or len(match["name"]) > 63 or len(match["prefix"] or "") > 253:
        raise Wrong(f"{shown(value)} is not a Kubernetes label key", right)
    return value


def airflow_pool(value: object) -> str:
    """Return an Airflow pool's name that a class may own."""
    name = _pool_text(value)
    if name == "default_pool":
        raise Wrong(
            "'default_pool' also holds every task that has nothing to do with this cluster",
            "name a pool of the class's own, such as burst: its slots will follow the nodes, down to 0",
        )
    return name


def priority_class(value: object) -> str:
    """Return the name of a Kubernetes PriorityClass for tasks; empty: the cluster's default."""
    name = _priority_text(value)
    if name == PLACEHOLDER_PRIORITY_CLASS:
        raise Wrong(f"{name!r} is for placeholder pods, which every task displaces", "name another PriorityClass")
    return name


def resource_name(name: object) -> str:
    """Return the name of a Kubernetes resource: one of its own, or one with a prefix."""
    if name in _CORE_RESOURCES or (isinstance(name, str) and name.startswith("hugepages-")):
        return str(name)
    if isinstance(name, str) and "/" in name:
        return label_key(name)
    advice = f"{suggestion(name, _CORE_RESOURCES)}; extended ones have a prefix, such as nvidia.com/gpu"
    raise Wrong(f"{shown(name)} is not a resource", advice, is_key=True)


def resources(what: str, *, required: tuple[str, ...] = (), example: str) -> Callable[[object], Resources]:
    """Return a check for a mapping of resource names to Kubernetes quantities, all above zero."""

    def check(value: object) -> Resources:
        right = f"write {what} as {example}"
        if not isinstance(value, dict):
            raise Wrong(f"{shown(value)} is not a mapping of resources", right)
        if not value:
            raise Wrong(f"{what} is empty", right)
        amounts: dict[str, int] = {}
        problems: list[tuple[str, Wrong]] = []
        for key, quantity in value.items():
            try:
                amounts[resource_name(key)] = _amount(key, quantity)
            except Wrong as problem:
                problems.append((str(key), problem))
        problems += [("", Wrong(f"{name} is missing", right)) for name in required if name not in value]
        if problems:
            raise SeveralWrong(problems)
        return Resources.of(amounts)

    return check


def _amount(resource: str, quantity: object) -> int:
    right = f"write a quantity above 0, such as {'500m or 4' if resource == CPU else '512Mi or 8Gi'}"
    if isinstance(quantity, bool) or not isinstance(quantity, int | float | str):
        raise Wrong(f"{shown(quantity)} is not a quantity", right)
    if not isinstance(quantity, str) and abs(quantity) >= 10**30:
        raise Wrong(f"{shown(quantity)} is more than Kubernetes can hold", right)
    try:
        amount = parse_quantity(quantity, resource=resource)
    except ValueError as error:
        raise Wrong(str(error).partition(";")[0], right) from None
    if amount == 0:
        raise Wrong(f"{shown(quantity)} is nothing", f"{right}, or leave {resource} out")
    return amount
