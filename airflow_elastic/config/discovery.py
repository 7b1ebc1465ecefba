"""Settings from what a cluster's nodes say about themselves: the proposal of ``init``, and what runs without a file.

Pure: nodes in (Kubernetes API dicts), settings in mode observe out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field
from typing import Any

from airflow_elastic.config.defaults import with_pods
from airflow_elastic.config.names import label_key, label_value, resource_name
from airflow_elastic.config.node_labels import (
    BOOT_SECONDS,
    POOL_LABELS,
    capacity_type_of,
    is_control_plane,
    lasting_taints,
)
from airflow_elastic.config.values import Wrong
from airflow_elastic.model.capacity_class import CapacityClass
from airflow_elastic.model.node_pool import CapacityType, NodePool, Taint
from airflow_elastic.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resources, parse_quantity
from airflow_elastic.model.settings import Mode, Settings

__all__ = ["BURST", "CORE", "discover_settings", "example_settings"]

CORE = "core"
BURST = "burst"

_SOURCE = "discovered from node labels"
_FALLBACK = ("kubernetes.io/os", "linux")
_ELASTIC_LABELS = ("airflow-elastic.io/node-pool", "karpenter.sh/nodepool", "karpenter.sh/provisioner-name")
_SLOT_CPUS = (1000, 500, 250, 100)
_MIB = 2**20
_MOST_NODES = 10_000
_CORE_RESOURCES = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)
_PRICES = {CapacityType.RESERVED: 0.7, CapacityType.ON_DEMAND: 1.0, CapacityType.SPOT: 0.5}


@dataclass(frozen=True, slots=True)
class _Node:
    labels: Mapping[str, str]
    shape: Resources
    taints: frozenset[Taint]
    capacity_type: CapacityType


@dataclass(slots=True)
class _Group:
    label: str
    value: str
    nodes: list[_Node] = field(default_factory=list)

    @property
    def order(self) -> tuple[int, str]:
        return POOL_LABELS.index(self.label) if self.label in POOL_LABELS else len(POOL_LABELS), self.value


def discover_settings(nodes: Iterable[Mapping[str, Any]]) -> Settings:
    """Return settings in mode observe for the node pools that ``nodes`` belong to.

    Pools are told apart by well-known labels; a cluster without any is one pool. Nodes of the control plane are left
    out, and so are nodes that do not say what they offer. No nodes: no pools and no classes.
    """
    pools: list[NodePool] = []
    for group in sorted(_grouped(nodes), key=lambda each: each.order):
        pools.append(_pool(_unique(_slug(group.value), {pool.name for pool in pools}), group))
    return Settings(node_pools=tuple(pools), classes=_classes(pools), mode=Mode.OBSERVE, source=_SOURCE)


def example_settings() -> Settings:
    """Return the settings that are proposed where no cluster can be asked."""
    shape = Resources.of({CPU: 4000, MEMORY: 16 * 2**30, PODS: 110})
    pools = [
        NodePool("fixed", (("node-pool", "fixed"),), shape, 1, 1, price_per_node_hour=0.7,
                 capacity_type=CapacityType.RESERVED, provider="none"),
        NodePool("elastic", (("node-pool", "elastic"),), shape, 0, 10),
    ]  # fmt: skip
    return Settings(node_pools=tuple(pools), classes=_classes(pools), mode=Mode.OBSERVE, source="example")


def _grouped(nodes: Iterable[Mapping[str, Any]]) -> list[_Group]:
    groups: dict[tuple[str, str], _Group] = {}
    unlabelled: list[_Node] = []
    for node in filter(None, map(_read, nodes)):
        label = next((label for label in POOL_LABELS if node.labels.get(label)), None)
        if label is None:
            unlabelled.append(node)
        else:
            key = label, node.labels[label]
            groups.setdefault(key, _Group(*key)).nodes.append(node)
    if not groups:
        # One pool for all of them; beside labelled pools its selector would take their nodes as well.
        everything = _Group(*_FALLBACK)
        everything.nodes = [node for node in unlabelled if node.labels.get(_FALLBACK[0]) == _FALLBACK[1]]
        return [everything] if everything.nodes else []
    return [group for group in groups.values() if not _takes_others(group, groups.values())]


def _takes_others(group: _Group, groups: Iterable[_Group]) -> bool:
    """Tell whether a group's selector (an instance type, say) also matches nodes that belong to another one."""
    return any(
        node.labels.get(group.label) == group.value for other in groups if other is not group for node in other.nodes
    )


def _read(node: Mapping[str, Any]) -> _Node | None:
    """Return what a node says about itself; None for the control plane and where it does not say what it offers."""
    labels = {}
    for key, value in _mapping(_mapping(node.get("metadata")).get("labels")).items():
        try:
            labels[label_key(key)] = label_value(value)
        except Wrong:
            continue
    status = _mapping(node.get("status"))
    amounts: dict[str, int] = {}
    for name, quantity in _mapping(status.get("allocatable") or status.get("capacity")).items():
        # Attachable volumes and huge pages are noise in a proposal; what pods of tasks ask for is kept.
        if name in _CORE_RESOURCES or ("/" in str(name) and not str(name).startswith("attachable-volumes")):
            try:
                amounts[resource_name(name)] = parse_quantity(quantity, resource=name)
            except ValueError:
                continue
    if is_control_plane(labels) or not amounts.get(CPU) or not amounts.get(MEMORY):
        return None
    taints = _mapping(node.get("spec")).get("taints")
    lasting = lasting_taints(taints if isinstance(taints, list) else [])
    return _Node(labels, with_pods(Resources.of(amounts)), lasting, capacity_type_of(labels))


def _mapping(value: object) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _pool(name: str, group: _Group) -> NodePool:
    count = len(group.nodes)
    kinds = {node.capacity_type for node in group.nodes}
    capacity_type = kinds.pop() if len(kinds) == 1 else CapacityType.ON_DEMAND
    is_elastic = capacity_type is CapacityType.SPOT or (
        capacity_type is CapacityType.ON_DEMAND and group.label in _ELASTIC_LABELS
    )
    boot = BOOT_SECONDS.get(group.label, 90.0)
    return NodePool(
        name=name,
        selector=((group.label, group.value),),
        shape=_smallest([node.shape for node in group.nodes]),
        min_nodes=0 if is_elastic else min(count, _MOST_NODES),
        max_nodes=min(max(10, 2 * count) if is_elastic else count, _MOST_NODES),
        boot_seconds=boot,
        boot_seconds_p95=2 * boot,
        price_per_node_hour=_PRICES[capacity_type],
        capacity_type=capacity_type,
        provider="placeholder" if is_elastic else "none",
        taints=tuple(sorted(frozenset.intersection(*(node.taints for node in group.nodes)), key=astuple)),
    )


def _smallest(shapes: list[Resources]) -> Resources:
    """Return what every node of a pool offers: a plan made with it holds on each of them."""
    return Resources.of({name: min(shape.get(name) for shape in shapes) for name in shapes[0].names})


def _classes(pools: list[NodePool]) -> tuple[CapacityClass, ...]:
    """Return ``core`` on the pools that stand and ``burst`` on those that come and go, each where there are any."""
    standing = [pool for pool in pools if pool.provider == "none"]
    elastic = sorted((pool for pool in pools if pool.provider != "none"), key=lambda pool: pool.price_per_node_hour)
    classes = []
    if standing:
        names = tuple(pool.name for pool in standing)
        classes.append(CapacityClass(CORE, names, CORE, _slot_shape(standing), evictable=False))
    if elastic:
        names = tuple(pool.name for pool in elastic)
        classes.append(CapacityClass(BURST, names, BURST, _slot_shape(elastic), evictable=True))
    return tuple(classes)


def _slot_shape(pools: list[NodePool]) -> Resources:
    """Return one CPU (less on tiny nodes) with its share of memory, so that slots fill the leanest node evenly."""
    cpu = next((size for size in _SLOT_CPUS if all(pool.shape.get(CPU) >= size for pool in pools)),
               min(pool.shape.get(CPU) for pool in pools))  # fmt: skip
    shares = [pool.shape.get(MEMORY) // (pool.shape.get(CPU) // cpu) for pool in pools]
    memory = min(shares)
    for step in (256 * _MIB, 64 * _MIB, _MIB, 1):
        if memory >= step:
            memory -= memory % step
            break
    return Resources.of({CPU: cpu, MEMORY: memory})


def _slug(value: str) -> str:
    """Return a label's value as a node pool's name (a DNS label), cut so that a number still fits behind it."""
    return re.sub(r"[^a-z0-9]+", "-", value.lower()).strip("-")[:50].strip("-") or "pool"


def _unique(name: str, taken: set[str]) -> str:
    number, unique = 2, name
    while unique in taken:
        unique, number = f"{name}-{number}", number + 1
    return unique
