"""Node pools: interchangeable nodes behind one label selector."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from airflow_elastic.model.resources import Resources

__all__ = ["CapacityType", "NodePool", "Taint"]


class CapacityType(StrEnum):
    """How the machines of a pool are paid for."""

    RESERVED = "reserved"
    ON_DEMAND = "on-demand"
    SPOT = "spot"


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint that all nodes of a pool carry; the tasks of its classes tolerate it."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


@dataclass(frozen=True, slots=True)
class NodePool:
    """Interchangeable nodes. ``shape`` is what one node offers to pods (allocatable) before anything runs on it."""

    name: str
    selector: tuple[tuple[str, str], ...]
    """Node labels, all of which a node of this pool carries."""
    shape: Resources
    min_nodes: int = 0
    max_nodes: int = 10
    boot_seconds: float = 90.0
    """Prior of the median time from request to usable; replaced by what is learnt."""
    boot_seconds_p95: float = 180.0
    price_per_node_hour: float = 1.0
    capacity_type: CapacityType = CapacityType.ON_DEMAND
    provider: str = "placeholder"
    """The mechanism that brings and removes nodes: ``placeholder``, ``scale``, …; ``none``: others do."""
    provider_options: tuple[tuple[str, str], ...] = ()
    taints: tuple[Taint, ...] = ()

    def option(self, name: str, default: str = "") -> str:
        """Return one of the provider's own options."""
        return dict(self.provider_options).get(name, default)
