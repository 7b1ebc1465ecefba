"""The typed form of the capacity file: what the rest of the product works with."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from airflow_elastic.model.capacity_class import CapacityClass, TaskRule
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.resources import Resources

__all__ = ["Mode", "RunLimits", "ScalingRules", "Settings"]


class Mode(StrEnum):
    """How much the controller may do: recommend only, keep Airflow's pools true, or bring and release nodes as well."""

    OBSERVE = "observe"
    SYNC = "sync"
    MANAGE = "manage"


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What one run may ask for by annotation; more is refused with the limit named."""

    max_nodes: int = 20
    max_hold_seconds: float = 4 * 3600.0
    allowed_classes: tuple[str, ...] = ()
    """Empty: every class."""


@dataclass(frozen=True, slots=True)
class ScalingRules:
    """Rules of the trade with their defaults; all durations in seconds."""

    tick_seconds: float = 1.0
    horizon_seconds: float = 6 * 3600.0
    """How far ahead coming runs are read; what the page shows."""
    max_hold_seconds: float = 3600.0
    """Longest that warm capacity is held for one owner without its use, whatever happens."""
    scale_in_cooldown_seconds: float = 60.0
    """No node of a pool goes sooner than this after its last scale-out."""
    hold_factor: float = 1.0
    """An idle node stays while a need is forecast within ``hold_factor`` × boot time (ski rental)."""
    prewarm_margin_seconds: float = 5.0
    """Added to the boot time's quantile: slack for the controller's own tick and the scheduler's."""
    default_task_seconds: float = 300.0
    """Prior for a task of which nothing at all is known."""
    stale_after_seconds: float = 60.0
    """A view of the cluster older than this freezes every action."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One installation's capacity: node pools and classes by name, in the file's order."""

    node_pools: tuple[NodePool, ...] = ()
    classes: tuple[CapacityClass, ...] = ()
    mode: Mode = Mode.OBSERVE
    default_class: str = ""
    """Class of an elastic task that names none; empty: the first class."""
    rules: tuple[TaskRule, ...] = ()
    limits: RunLimits = field(default_factory=RunLimits)
    scaling: ScalingRules = field(default_factory=ScalingRules)
    namespace: str = "default"
    """Kubernetes namespace for placeholders and the leader's Lease, and the default for tasks."""
    default_requests: Resources = field(default_factory=lambda: Resources.of(cpu=1000, memory=512 * 2**20))
    """Counted for a task that states no requests, so that it takes room in the plan as it will on the node."""
    source: str = ""
    """Where these settings come from: the file's path, or how they were discovered."""

    def node_pool(self, name: str) -> NodePool | None:
        """Return a node pool by name, or None."""
        return next((pool for pool in self.node_pools if pool.name == name), None)

    def capacity_class(self, name: str) -> CapacityClass | None:
        """Return a class by name, or None; the empty name is the default class."""
        wanted = name or self.default_class or (self.classes[0].name if self.classes else "")
        return next((each for each in self.classes if each.name == wanted), None)

    def class_of_airflow_pool(self, airflow_pool: str) -> CapacityClass | None:
        """Return the (first) class whose tasks go through an Airflow pool, or None."""
        return next((each for each in self.classes if each.airflow_pool == airflow_pool), None)

    def classes_on(self, node_pool: str) -> tuple[CapacityClass, ...]:
        """Return the classes that may use a node pool, in the file's order."""
        return tuple(each for each in self.classes if node_pool in each.node_pools)
