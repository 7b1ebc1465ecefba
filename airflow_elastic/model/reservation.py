"""Reservations: warm capacity that somebody owns and that always ends."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["TRANSITIONS", "Reservation", "ReservationState", "reservation_id"]


class ReservationState(StrEnum):
    """States of a reservation; every allowed edge is in ``TRANSITIONS``."""

    PLANNED = "planned"
    REQUESTED = "requested"
    WARMING = "warming"
    READY = "ready"
    IN_USE = "in_use"
    RELEASED = "released"
    FAILED = "failed"
    EXPIRED = "expired"

    @property
    def is_over(self) -> bool:
        """Tell whether the reservation holds nothing any more."""
        return self in (ReservationState.RELEASED, ReservationState.FAILED, ReservationState.EXPIRED)

    @property
    def holds_capacity(self) -> bool:
        """Tell whether nodes were asked for on its behalf and not yet given back."""
        return self in (
            ReservationState.REQUESTED, ReservationState.WARMING, ReservationState.READY, ReservationState.IN_USE,
        )  # fmt: skip


_S = ReservationState
TRANSITIONS: dict[tuple[ReservationState, ReservationState], str] = {
    (_S.PLANNED, _S.REQUESTED): "its lead time has come: nodes were asked for",
    (_S.PLANNED, _S.READY): "enough usable nodes stand already",
    (_S.PLANNED, _S.IN_USE): "its tasks run on nodes that stood already",
    (_S.PLANNED, _S.RELEASED): "the run ended, or will not come, before anything was asked for",
    (_S.PLANNED, _S.EXPIRED): "it was never due within its longest hold",
    (_S.REQUESTED, _S.WARMING): "the first of its nodes boots",
    (_S.REQUESTED, _S.READY): "all its nodes are usable",
    (_S.REQUESTED, _S.IN_USE): "its tasks have begun to use the nodes",
    (_S.REQUESTED, _S.RELEASED): "its run no longer needs them",
    (_S.REQUESTED, _S.FAILED): "the provider could not bring the nodes",
    (_S.REQUESTED, _S.EXPIRED): "held for max_hold without use",
    (_S.WARMING, _S.READY): "all its nodes are usable",
    (_S.WARMING, _S.IN_USE): "its tasks have begun to use the nodes",
    (_S.WARMING, _S.RELEASED): "its run no longer needs them",
    (_S.WARMING, _S.FAILED): "the provider gave up on its nodes",
    (_S.WARMING, _S.EXPIRED): "held for max_hold without use",
    (_S.READY, _S.WARMING): "a node of it was lost and is brought again, or its run needs more",
    (_S.READY, _S.IN_USE): "its tasks have begun to use the nodes",
    (_S.READY, _S.RELEASED): "its run no longer needs them",
    (_S.READY, _S.EXPIRED): "held for max_hold without use",
    (_S.IN_USE, _S.RELEASED): "no remaining task of the run needs its nodes",
    (_S.IN_USE, _S.EXPIRED): "held for max_hold without use",
    (_S.FAILED, _S.REQUESTED): "tried again after the provider's back-off",
}


def reservation_id(dag_id: str, run_id: str, node_pool: str) -> str:
    """Return the stable id of a reservation: 16 hex digits that fit into a Kubernetes name."""
    return hashlib.sha256("\0".join((dag_id, run_id, node_pool)).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Reservation:
    """Warm capacity owned by one (dag_id, run_id, node pool)."""

    dag_id: str
    run_id: str
    node_pool: str
    nodes: int
    """Nodes that the run needs at its peak within the planner's window; what it holds now, once asked for."""
    state: ReservationState
    needed_at: float
    """When its first task that needs a node is expected to be ready (Unix seconds)."""
    until_at: float
    """When its last need is expected to end."""
    ask_at: float
    """When the nodes are to be asked for: ``needed_at`` less the boot time's quantile and margin."""
    asked_at: float | None = None
    expires_at: float = 0.0
    """After this it goes whatever happened: max_hold. Every object made for it carries this time."""
    warm_nodes: int = 0
    """Of its nodes, those kept warm now without a pod on them."""
    changed_at: float = 0.0
    why: str = ""
    """The sentence of the last change."""

    @property
    def id(self) -> str:
        """Return the stable id (see ``reservation_id``)."""
        return reservation_id(self.dag_id, self.run_id, self.node_pool)
