"""The provider protocol: how a node pool is asked for nodes and how nodes are let go.

One provider object serves one node pool of the capacity file. Third parties write their own and run
``airflow_elastic.testing.provider_conformance`` against it.

The contract
- **Absolute**: ``apply`` states what should be there in total. Calling it twice with the same target changes nothing
  the second time; calling it after a restart with the same target finds and adopts what was asked for before.
- **No memory is needed**: everything that has to survive a kill lives in the cluster (or cloud), carries an owner and
  an expiry, and is found again by ``state`` and ``sweep``. What an object remembers may only save calls or word a note.
- **Never blocks for long**: a call asks and returns; nodes coming and going is seen in the cluster by the watch.
- **Truth about use is the cluster**: ``state`` tells what is asked for and why it fails, never whether a node is
  usable.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from airflow_elastic.errors import ElasticError, TemporaryError
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.snapshot import Node, NodePoolState, Pod

__all__ = [
    "ClusterCalls",
    "InsufficientCapacity",
    "Outcome",
    "PoolFacts",
    "Provider",
    "ProviderRefused",
    "Target",
    "WarmShare",
]


class InsufficientCapacity(TemporaryError):
    """The mechanism has no machines now (stock-out, quota, back-off): another node pool may, or later."""


class ProviderRefused(ElasticError):
    """The mechanism forbids what was asked (permission, unknown object, bounds): a person has to act."""


class ClusterCalls(Protocol):
    """The API server in plain JSON, as ``airflow_elastic.kubernetes.client.ClusterApi`` offers it."""

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> tuple[int, dict[str, Any]]:
        """Return status and body, refusals included; raise TemporaryError where there is no answer, on 429 and 5xx."""
        ...


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """What the watch sees of one node pool at ``now``. Providers read it instead of asking the API server again."""

    now: float
    pool: NodePool
    nodes: tuple[Node, ...] = ()
    """Every node object of the pool: usable, booting, releasing."""
    placeholders: tuple[Pod, ...] = ()
    """Our placeholder pods made for this pool."""
    task_pods: tuple[Pod, ...] = ()
    """Our unfinished task pods that may use this pool, bound or not."""
    age_seconds: float = 0.0
    """Age of this view: after a restart it may not show yet what the last process did."""


@dataclass(frozen=True, slots=True)
class WarmShare:
    """Warm nodes owned by one reservation (or by the pool's minimum)."""

    reservation_id: str
    nodes: int
    expires_at: float
    """After this anybody may delete what was made for it."""
    dag_id: str = ""
    run_id: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """What a node pool should be. All numbers are totals."""

    nodes: int
    """Nodes that should stand or come; None of the ``release`` ones is among them."""
    warm: tuple[WarmShare, ...] = ()
    """Who owns the nodes that no task's pod occupies; mechanisms that hold nodes by objects make theirs from it."""
    release: tuple[str, ...] = ()
    """Names of nodes that must go first; each was seen without a task's pod."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call did, for decisions and log. Empty: nothing had to be done."""

    done: tuple[str, ...] = ()
    """Sentences, one for each change that was made."""
    refused: tuple[str, ...] = ()
    """Sentences, one for each part that was not done and why (for example a node that a pod took meanwhile)."""

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(self.done + other.done, self.refused + other.refused)


class Provider(Protocol):
    """A mechanism behind one node pool."""

    @property
    def pool(self) -> NodePool:
        """Return the node pool that it serves."""
        ...

    @property
    def is_autoscaled(self) -> bool:
        """Tell whether pending task pods make nodes come by themselves (an autoscaler watches them)."""
        ...

    def state(self, facts: PoolFacts) -> NodePoolState:
        """Return what is asked for, how many nodes are coming, and why none can come now.

        Coming nodes are those asked for that are not node objects yet. A node that stands, booting or usable, is never
        counted as coming, so ``len(nodes) + coming_nodes`` is what the pool will have. Must not change anything.

        Raises:
            TemporaryError: the mechanism does not answer; the caller keeps the last state.
            ProviderRefused: its object is missing or may not be read.
        """
        ...

    def apply(self, facts: PoolFacts, target: Target) -> Outcome:
        """Bring the pool to ``target``: ask for what is missing, give back what is too much, release chosen nodes.

        - Asking: never more in total than ``target.nodes`` within the pool's min and max.
        - Shrinking: what tasks have taken is not held a second time: holding objects are removed as the warm shares
          shrink, before new ones are made.
        - Releasing: a node in ``release`` is checked again just before it is given up; one that runs a task's pod
          by then is kept and reported in ``refused``.
        - A failure half way leaves a state from which the same call goes on.

        Raises:
            InsufficientCapacity: the mechanism said at once that it has no machines.
            TemporaryError: no answer; the same call is made again later.
            ProviderRefused: a person has to act; the message says what to do.
        """
        ...

    def sweep(self, facts: PoolFacts, live: Collection[str]) -> Outcome:
        """Remove or complete what an earlier process left: expired objects, owners not in ``live``, half releases.

        Called on each tick, so it must be cheap where nothing is left behind. ``live`` holds the ids of the
        reservations that hold capacity, and of the pools' minima.

        Raises:
            TemporaryError: no answer; the rest is swept later.
        """
        ...
