"""The planner's whole output: typed actions, refusals, forecast, next reservations and memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from airflow_elastic.model.reasons import Reason
from airflow_elastic.model.reservation import Reservation
from airflow_elastic.model.snapshot import PlannerMemory

__all__ = ["Action", "NodePoolForecast", "Plan", "Refusal", "RunForecast", "SetNodes", "SetSlots", "TransitionNote"]


@dataclass(frozen=True, slots=True)
class SetSlots:
    """Write an Airflow pool's slots. ``is_down`` ones are done before any node goes, the others after nodes came."""

    airflow_pool: str
    slots: int
    was: int
    reason: Reason

    @property
    def is_down(self) -> bool:
        """Tell whether this lowers the pool (from unlimited counts as lowering)."""
        return self.was < 0 or self.slots < self.was


@dataclass(frozen=True, slots=True)
class SetNodes:
    """Bring a node pool to ``nodes`` in total; the named ones may go. Absolute, so repeating it changes nothing."""

    node_pool: str
    nodes: int
    was: int
    """Nodes that stood or were coming when this was planned."""
    warm_nodes: int
    """Of ``nodes``, those that no task's pod occupies: what placeholders have to hold."""
    reason: Reason
    release: tuple[str, ...] = ()
    """Names of nodes to drain and remove now; nothing of ours runs there."""

    @property
    def is_out(self) -> bool:
        """Tell whether the pool grows."""
        return self.nodes > self.was


Action = SetSlots | SetNodes


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something asked for or possible that is not done, and why. ``about`` names the object."""

    about: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class TransitionNote:
    """A change of a reservation, for log, ledger and page."""

    reservation_id: str
    about: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class NodePoolForecast:
    """Nodes that a pool needs over time: a step function, each step valid until the next."""

    node_pool: str
    steps: tuple[tuple[float, int], ...]
    """(Unix seconds, nodes)"""
    target_nodes: int = 0
    """What the pool should have now."""


@dataclass(frozen=True, slots=True)
class RunForecast:
    """What one run will need of one node pool and when that is asked for."""

    dag_id: str
    run_id: str
    starts_at: float
    node_pool: str
    nodes: int
    needed_at: float
    ask_at: float
    until_at: float


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do now. ``actions`` are in the order in which they must be done."""

    actions: tuple[Action, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    """Every reservation after this plan; those over are dropped once noted."""
    transitions: tuple[TransitionNote, ...] = ()
    node_pools: tuple[NodePoolForecast, ...] = ()
    runs: tuple[RunForecast, ...] = ()
    usable_slots: tuple[tuple[str, int], ...] = ()
    """(Airflow pool, slots that fit on usable nodes now)"""
    kept: tuple[Refusal, ...] = ()
    """Why each idle node is not released: answers `explain NODE`."""
    memory: PlannerMemory = field(default_factory=PlannerMemory)
    frozen: Reason | None = None
    """Set when the view is too old to act on: actions are empty then."""
