"""Capacity classes: what a task may run on and what its waiting costs."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_elastic.model.resources import Resources

__all__ = ["CapacityClass", "TaskRule"]


@dataclass(frozen=True, slots=True)
class CapacityClass:
    """``core``, ``burst`` or an admin's own: node pools in order, Airflow pool, slot shape, price of waiting."""

    name: str
    node_pools: tuple[str, ...]
    airflow_pool: str
    slot_shape: Resources
    """One slot of the Airflow pool; a task's ``pool_slots`` = the slots that its requests need."""
    priority_class: str = ""
    """Kubernetes PriorityClass of its pods; empty: the cluster's default."""
    evictable: bool = False
    """May its pods be evicted for another class or for scale-in? Core: never."""
    wait_price_ratio: float = 9.0
    """Price of a second of waiting in prices of an idle node-second: w/h of the newsvendor rule (planning.md)."""
    tolerations: tuple[tuple[str, str, str], ...] = ()
    """Extra (key, value, effect) that its pods tolerate beside the taints of its node pools."""

    @property
    def ready_quantile(self) -> float:
        """Return the quantile of a task's ready time at which its node must be usable: h / (h + w)."""
        return 1.0 / (1.0 + self.wait_price_ratio)


@dataclass(frozen=True, slots=True)
class TaskRule:
    """Tags tasks that say nothing themselves: all patterns (shell globs) must match; the first rule that does wins."""

    capacity_class: str
    dag_id: str = "*"
    task_id: str = "*"
    operator: str = "*"
    tag: str = "*"
    """Matches when any of the DAG's tags does; ``*`` also matches a DAG without tags."""
