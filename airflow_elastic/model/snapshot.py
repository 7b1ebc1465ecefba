"""The planner's whole input, frozen at one moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from airflow_elastic.model.demand import DurationEstimate, Run, TaskKey
from airflow_elastic.model.reservation import Reservation
from airflow_elastic.model.resources import NO_RESOURCES, Resources
from airflow_elastic.model.settings import Settings

__all__ = ["AirflowPool", "Node", "NodePoolState", "PlannerMemory", "Pod", "PodPhase", "Snapshot"]


class PodPhase(StrEnum):
    """Kubernetes' pod phases."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"

    @property
    def is_finished(self) -> bool:
        """Tell whether its containers have ended: it takes no room any more."""
        return self in (PodPhase.SUCCEEDED, PodPhase.FAILED)


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a declared pool. Room for our pods = ``allocatable − foreign`` (− our pods bound there)."""

    name: str
    node_pool: str
    allocatable: Resources
    usable: bool
    """Ready, not cordoned, not deleting, no blocking taint, and every promised extended resource is there."""
    unusable_because: str = ""
    created_at: float = 0.0
    usable_since: float | None = None
    foreign: Resources = NO_RESOURCES
    """Requests (and pod count) of pods bound there that are neither our tasks nor our placeholders."""
    is_booting: bool = False
    """Not usable yet, but expected to be by itself (never was Ready)."""
    is_releasing: bool = False
    """We (or the autoscaler) are already removing it."""
    is_lost: bool = False
    """Its kubelet was Ready once and no longer reports: its mechanism may already be replacing it."""
    blocks_release: str = ""
    """Why this node must not be removed now (core or foreign work on it); empty: nothing forbids it."""


@dataclass(frozen=True, slots=True)
class Pod:
    """A task's pod or a placeholder of ours, in any phase until it is deleted."""

    name: str
    namespace: str
    requests: Resources
    """Summed over containers as the scheduler does; includes ``pods: 1``."""
    phase: PodPhase
    node: str = ""
    """Empty until bound."""
    owner: TaskKey | None = None
    """The task instance it works for, where known; None for a placeholder."""
    capacity_class: str = ""
    placeholder_of: str = ""
    """Reservation id when it is a placeholder."""
    expires_at: float | None = None
    node_pools: tuple[str, ...] = ()
    """Pools its affinity admits; empty: its class's."""
    created_at: float = 0.0
    started_at: float | None = None
    unschedulable_since: float | None = None
    is_deleting: bool = False

    @property
    def takes_room(self) -> bool:
        """Tell whether the pod occupies (or waits for) room: a task's pod that has not finished."""
        return not self.placeholder_of and not self.phase.is_finished


@dataclass(frozen=True, slots=True)
class AirflowPool:
    """An Airflow pool as the metadata DB has it; counts are in slots."""

    name: str
    slots: int
    """−1: unlimited."""
    running: int = 0
    queued: int = 0
    deferred: int = 0
    scheduled: int = 0
    """Held back; counts nowhere in Airflow."""
    include_deferred: bool = True

    @property
    def occupied(self) -> int:
        """Return the slots that Airflow counts as taken."""
        return self.running + self.queued + (self.deferred if self.include_deferred else 0)


@dataclass(frozen=True, slots=True)
class NodePoolState:
    """What the provider of a node pool says about it."""

    node_pool: str
    desired_nodes: int | None = None
    """The number that the mechanism works towards; None where it has no such number (placeholders)."""
    coming_nodes: int = 0
    """Asked for and not registered as a node yet."""
    coming_since: float | None = None
    failure: str = ""
    """Why the mechanism cannot bring nodes now (stock-out, quota, back-off); empty: it can."""
    failed_until: float | None = None


@dataclass(frozen=True, slots=True)
class PlannerMemory:
    """The planner's explicit state between two plans: hysteresis and cool-down."""

    last_scale_out_at: tuple[tuple[str, float], ...] = ()
    """(node pool, Unix seconds)"""
    last_scale_in_at: tuple[tuple[str, float], ...] = ()
    idle_since: tuple[tuple[str, float], ...] = ()
    """(node, Unix seconds since no task of ours runs there)"""

    def scale_out_at(self, node_pool: str) -> float | None:
        """Return when the pool last grew, or None."""
        return dict(self.last_scale_out_at).get(node_pool)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that the planner may know. Same snapshot, same plan."""

    now: float
    settings: Settings
    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    airflow_pools: tuple[AirflowPool, ...] = ()
    runs: tuple[Run, ...] = ()
    """Active, queued and coming (up to the horizon) runs."""
    node_pool_states: tuple[NodePoolState, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    boot: tuple[tuple[str, DurationEstimate], ...] = ()
    """(node pool, time from request to usable); a pool that is missing uses its prior."""
    memory: PlannerMemory = field(default_factory=PlannerMemory)
    cluster_age_seconds: float = 0.0
    """Age of the view of the cluster; beyond ``stale_after_seconds`` every action is frozen."""
    airflow_age_seconds: float = 0.0
    """Age of the view of the metadata DB, likewise."""
