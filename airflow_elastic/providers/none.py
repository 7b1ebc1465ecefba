"""The provider of fixed node pools: others bring and remove their nodes; we only look."""

from __future__ import annotations

from collections.abc import Collection

from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.snapshot import NodePoolState
from airflow_elastic.providers.base import Outcome, PoolFacts, Target

__all__ = ["NoProvider"]


class NoProvider:
    """Never acts."""

    is_autoscaled = False

    def __init__(self, pool: NodePool) -> None:
        self.pool = pool

    def state(self, facts: PoolFacts) -> NodePoolState:
        """Return a state without a number of its own: nothing is ever asked for."""
        return NodePoolState(self.pool.name)

    def apply(self, facts: PoolFacts, target: Target) -> Outcome:
        """Do nothing; say so where something was wanted."""
        if target.nodes == len(facts.nodes) and not target.release:
            return Outcome()
        return Outcome(refused=(f"{self.pool.name} has no provider (provider: none): its nodes are others' to change",))

    def sweep(self, facts: PoolFacts, live: Collection[str]) -> Outcome:
        """Do nothing: it leaves nothing."""
        return Outcome()
