"""The ledger's records: what each node's time and cost was for. Times and durations are whole milliseconds.

Whole numbers add up exactly, in Python and in every database: the sum of a node's charges is its bill.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["MS_PER_HOUR", "Charge", "NodeBill", "Posting", "RunAccount", "RunBill", "Use"]

MS_PER_HOUR = 3_600_000


class Use(StrEnum):
    """What a piece of a node's time was for."""

    TASK = "task"
    """Pods of tasks were on it: shared out among them by what they asked for."""
    LOST = "lost"
    """The same, of a pod that the infrastructure took before it had finished: work thrown away."""
    BOOT = "boot"
    """From the request until it was usable, for the run that it was asked for."""
    WARM = "warm"
    """Held ready for a run without a pod of a task on it."""
    MINIMUM = "minimum"
    """Idle, and one of its pool's ``min_nodes``."""
    LEAVING = "leaving"
    """Empty and on its way out; still billed."""
    UNEXPLAINED = "unexplained"
    """Idle, and nobody's."""


@dataclass(frozen=True, slots=True)
class Charge:
    """A part of a node's time. The run and task are empty where the use has none."""

    node_uid: str
    use: Use
    node_ms: int
    dag_id: str = ""
    run_id: str = ""
    task_id: str = ""

    @property
    def owner(self) -> tuple[str, str]:
        """Return (dag_id, run_id)."""
        return (self.dag_id, self.run_id)


@dataclass(frozen=True, slots=True)
class NodeBill:
    """A node's life as it is paid for, and how far it is accounted for."""

    uid: str
    name: str
    node_pool: str
    price_per_node_hour: float
    started_ms: int
    """When it was requested; where that is not known, when it was created."""
    accounted_ms: int
    """Everything before is charged."""
    ended_ms: int | None = None
    """None: it stands."""

    def cost_of(self, node_ms: int) -> float:
        """Return the cost of a part of its time at its present price."""
        return node_ms * self.price_per_node_hour / MS_PER_HOUR


@dataclass(frozen=True, slots=True)
class Posting:
    """Charges of one node over one stretch of its time, which are written all or not at all.

    ``from_ms`` is where the stretch begins, and what the stored bill must say is accounted: the same stretch is never
    written twice, nor one left out.
    """

    bill: NodeBill
    """As it is after the stretch."""
    from_ms: int | None
    """None: the node has no stored bill yet."""
    charges: tuple[tuple[Charge, float], ...]
    """With their costs."""


@dataclass(frozen=True, slots=True)
class RunAccount:
    """What a run asked for, got and waited for; its node time and cost are the sums of its charges."""

    dag_id: str
    run_id: str
    asked_nodes: int = 0
    """Most nodes that were reserved for it at once, in all node pools together."""
    granted_nodes: int = 0
    """Most nodes that booted, stood warm or worked for it at once."""
    waits: int = 0
    """Pods that have started."""
    waited_ms: int = 0
    """Sum of their burst waits: from ready to run until running."""
    longest_wait_ms: int = 0
    waits_until_ms: int = 0
    """Start of the latest pod that is counted: a later process goes on from there."""
    preemptions: int = 0
    """Pods that the infrastructure took."""
    first_ms: int = 0
    last_ms: int = 0


@dataclass(frozen=True, slots=True)
class RunBill:
    """A run's account with the sums of its charges: what page and command show."""

    account: RunAccount
    node_ms: tuple[tuple[Use, int], ...] = ()
    cost: float = 0.0
    wasted_cost: float = 0.0

    def of(self, *uses: Use) -> int:
        """Return the node time of some uses."""
        return sum(ms for use, ms in self.node_ms if use in uses)

    @property
    def wasted_ms(self) -> int:
        """Return the node time held warm without a task, and that of work thrown away."""
        return self.of(Use.WARM, Use.LOST)
