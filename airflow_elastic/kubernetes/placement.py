"""Where a task's pod may run: pure functions from settings to Kubernetes API dicts (camelCase).

Kubernetes' scheduler decides and preempts; we only state which nodes are admissible and which are preferred.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from airflow_elastic.errors import ConfigurationError
from airflow_elastic.model.capacity_class import CapacityClass
from airflow_elastic.model.carrier import TaskCapacity
from airflow_elastic.model.labels import LABEL_CAPACITY_CLASS
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.settings import Settings

__all__ = ["Placement", "admitted_node_pools", "node_affinity", "placement_for", "tolerations"]

_HIGHEST_WEIGHT = 100

# A bare pod that an autoscaler drains is lost: it has no controller that would make it again.
_KEEP_WHILE_RUNNING = (
    ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),
    ("karpenter.sh/do-not-disrupt", "true"),
)


@dataclass(frozen=True, slots=True)
class Placement:
    """What is put on a task's pod; dicts as the Kubernetes API has them."""

    node_affinity: dict[str, Any]
    """The value of ``spec.affinity.nodeAffinity``."""
    tolerations: list[dict[str, str]]
    priority_class_name: str
    """Empty: the cluster's default."""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


def placement_for(settings: Settings, task: TaskCapacity) -> Placement:
    """Return the placement of a task's pod: its node pools by order of preference, tolerations, priority.

    Raises:
        ConfigurationError: the task names a class, or node pools, that the settings do not have.
    """
    capacity_class = settings.capacity_class(task.capacity_class)
    if capacity_class is None:
        known = ", ".join(each.name for each in settings.classes) or "none"
        raise ConfigurationError(
            f"capacity class {task.capacity_class!r} is not in {settings.source or 'the settings'} (known: {known}); "
            "name one of these or add it under classes"
        )
    pools = admitted_node_pools(settings, capacity_class, task.node_pools)
    return Placement(
        node_affinity=node_affinity(pools),
        tolerations=tolerations(pools, capacity_class),
        priority_class_name=capacity_class.priority_class,
        labels={LABEL_CAPACITY_CLASS: capacity_class.name},
        annotations=dict(_KEEP_WHILE_RUNNING),
    )


def admitted_node_pools(
    settings: Settings, capacity_class: CapacityClass, node_pools: Iterable[str] = ()
) -> tuple[NodePool, ...]:
    """Return the node pools that a task may use, in order of preference: its own choice or its class's.

    Raises:
        ConfigurationError: one is not declared, or none is left.
    """
    wanted = tuple(node_pools) or capacity_class.node_pools
    found = [(name, settings.node_pool(name)) for name in wanted]
    missing = [name for name, pool in found if pool is None]
    pools = tuple(pool for _, pool in found if pool is not None)
    if missing or not pools:
        known = ", ".join(pool.name for pool in settings.node_pools) or "none"
        raise ConfigurationError(
            f"capacity class {capacity_class.name!r} needs node pool(s) {', '.join(missing) or '(none named)'}, which "
            f"{settings.source or 'the settings'} does not have (known: {known}); declare them under node_pools"
        )
    return pools


def node_affinity(pools: Iterable[NodePool]) -> dict[str, Any]:
    """Return a node affinity that admits exactly the nodes of ``pools`` and prefers the earlier ones."""
    terms = [_term(pool) for pool in pools]
    affinity: dict[str, Any] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    if len(terms) > 1:
        step = max(1, _HIGHEST_WEIGHT // len(terms))
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": max(1, _HIGHEST_WEIGHT - step * place), "preference": term} for place, term in enumerate(terms)
        ]
    return affinity


def tolerations(pools: Iterable[NodePool], capacity_class: CapacityClass | None = None) -> list[dict[str, str]]:
    """Return tolerations for the taints of ``pools`` and the extra ones of the class, without doubles, in order."""
    wanted = [(taint.key, taint.value, taint.effect) for pool in pools for taint in pool.taints]
    wanted += capacity_class.tolerations if capacity_class else ()
    return [_toleration(*each) for each in dict.fromkeys(wanted)]


def _term(pool: NodePool) -> dict[str, Any]:
    return {
        "matchExpressions": [{"key": key, "operator": "In", "values": [value]} for key, value in sorted(pool.selector)]
    }


def _toleration(key: str, value: str, effect: str) -> dict[str, str]:
    toleration = {"operator": "Equal" if value else "Exists"}
    if key:
        toleration["key"] = key
    if value:
        toleration["value"] = value
    if effect:
        toleration["effect"] = effect
    return toleration
