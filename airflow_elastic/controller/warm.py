"""Who owns the warm nodes of a pool: its reservations, and for the rest the pool itself. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.reservation import Reservation, reservation_id
from airflow_elastic.model.settings import Settings
from airflow_elastic.providers.base import PoolFacts, WarmShare

__all__ = ["pool_owner_id", "warm_shares"]


def pool_owner_id(pool: NodePool) -> str:
    """Return the owner's id of warm nodes that no run owns: the minimum, and idle ones that are not let go yet."""
    return reservation_id("", "", pool.name)


def warm_shares(
    facts: PoolFacts, reservations: Iterable[Reservation], settings: Settings, warm_nodes: int
) -> tuple[WarmShare, ...]:
    """Share out a pool's warm nodes: to the reservations that are needed first, the rest to the pool itself."""
    own = sorted(
        (each for each in reservations if each.node_pool == facts.pool.name and each.state.holds_capacity),
        key=lambda each: (each.needed_at, each.id),
    )
    shares: list[WarmShare] = []
    left = warm_nodes
    for each in own:
        nodes = min(each.warm_nodes, left)
        if nodes > 0 and each.expires_at > facts.now:
            shares.append(WarmShare(each.id, nodes, each.expires_at, each.dag_id, each.run_id))
            left -= nodes
    if left > 0:
        shares.append(WarmShare(pool_owner_id(facts.pool), left, facts.now + settings.scaling.max_hold_seconds))
    return tuple(shares)
