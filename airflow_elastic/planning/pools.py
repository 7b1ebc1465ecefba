"""Each node pool as the planner sees it now: what stands, what comes, what may come, and how long that takes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from airflow_elastic.model.demand import DurationEstimate
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.snapshot import Node, NodePoolState, Pod, Snapshot
from airflow_elastic.planning.quantiles import boot_quantile, sane

__all__ = ["NO_PROVIDER", "PoolView", "is_live", "pool_views"]

NO_PROVIDER = "none"


@dataclass(frozen=True, slots=True)
class PoolView:
    """A node pool at this moment. A node is in exactly one of ``usable``, ``booting``, ``unusable``, ``leaving``."""

    pool: NodePool
    state: NodePoolState
    usable: tuple[Node, ...]
    booting: tuple[Node, ...]
    unusable: tuple[Node, ...]
    """There, but cordoned, not ready or broken: no capacity, though it counts towards the maximum."""
    leaving: tuple[Node, ...]
    """Being removed already."""
    failure: str
    """Why the provider brings no node now; empty: it can."""
    lead_seconds: float
    """How long before its use a node has to be asked for."""
    boot_seconds: float
    """The boot time's quantile within ``lead_seconds``."""
    hold_seconds: float
    """An idle node stays while a need is forecast within this time after the lead: the price of booting it again."""
    placeholders: int
    """Placeholder pods of this pool that exist and are not going."""

    @property
    def name(self) -> str:
        """Return the pool's name."""
        return self.pool.name

    @property
    def coming(self) -> int:
        """Return the nodes that were asked for, have not registered yet and are still expected."""
        return 0 if self.failure else max(self.state.coming_nodes, 0)

    @property
    def have(self) -> int:
        """Return the nodes that offer capacity or will by themselves."""
        return len(self.usable) + len(self.booting) + self.coming

    @property
    def ceiling(self) -> int:
        """Return how many nodes with capacity the pool can have: max_nodes less those that stand there unusable.

        A lost node is replaced by its mechanism and takes no place of another one.
        """
        return max(self.pool.max_nodes - self.unusable_standing, 0)

    @property
    def unusable_standing(self) -> int:
        """Return the unusable nodes that the mechanism still counts as its own."""
        return sum(not node.is_lost for node in self.unusable)

    @property
    def is_managed(self) -> bool:
        """Tell whether we bring and remove its nodes at all."""
        return self.pool.provider != NO_PROVIDER

    @property
    def can_grow(self) -> bool:
        """Tell whether a new node can be asked for now (the maximum apart)."""
        return self.is_managed and not self.failure

    @property
    def reachable(self) -> int:
        """Return how many nodes with capacity there can be soon; what comes beyond the maximum is not counted on."""
        standing = len(self.usable) + len(self.booting)
        most = max(self.ceiling, standing)
        return most if self.can_grow else min(self.have, most)

    @property
    def window_seconds(self) -> float:
        """Return how far ahead needs matter for what this pool does now."""
        return self.lead_seconds + self.hold_seconds

    @property
    def by_placeholders(self) -> bool:
        """Tell whether its mechanism has no number of its own, so that placeholders hold the warm nodes."""
        return self.is_managed and self.state.desired_nodes is None


def is_live(pod: Pod) -> bool:
    """Tell whether the pod is a task's that takes or wants room and is not being deleted."""
    return pod.takes_room and not pod.is_deleting


def pool_views(snapshot: Snapshot) -> dict[str, PoolView]:
    """Return a view of every declared node pool, in the settings' order; nodes of other pools are not looked at."""
    settings, scaling = snapshot.settings, snapshot.settings.scaling
    nodes: dict[str, list[Node]] = defaultdict(list)
    for node in snapshot.nodes:
        nodes[node.node_pool].append(node)
    pool_of_node = {node.name: node.node_pool for node in snapshot.nodes}
    placeholders: dict[str, int] = defaultdict(int)
    for pod in snapshot.pods:
        if pod.placeholder_of and not pod.phase.is_finished and not pod.is_deleting:
            placeholders[pod.node_pools[0] if pod.node_pools else pool_of_node.get(pod.node, "")] += 1
    states = {state.node_pool: state for state in snapshot.node_pool_states}
    boots = dict(snapshot.boot)
    views: dict[str, PoolView] = {}
    for pool in settings.node_pools:
        state = states.get(pool.name, NodePoolState(pool.name))
        boot = boots.get(pool.name) or DurationEstimate(pool.boot_seconds, pool.boot_seconds, pool.boot_seconds_p95)
        # Classes that share a pool share its lead: that of the class whose waiting costs most.
        wanted = [each.ready_quantile for each in settings.classes_on(pool.name)]
        boot_seconds = boot_quantile(boot, min(wanted, default=0.1))
        staying = [node for node in nodes[pool.name] if not node.is_releasing]
        views[pool.name] = PoolView(
            pool=pool,
            state=state,
            usable=tuple(node for node in staying if node.usable),
            booting=tuple(node for node in staying if not node.usable and node.is_booting),
            unusable=tuple(node for node in staying if not node.usable and not node.is_booting),
            leaving=tuple(node for node in nodes[pool.name] if node.is_releasing),
            failure=_failure(state, snapshot.now),
            lead_seconds=boot_seconds + max(scaling.prewarm_margin_seconds, 0.0) + max(scaling.tick_seconds, 0.0),
            boot_seconds=boot_seconds,
            hold_seconds=max(scaling.hold_factor, 0.0) * sane(boot)[1],
            placeholders=placeholders[pool.name],
        )
    return views


def _failure(state: NodePoolState, now: float) -> str:
    """Return the provider's failure while it lasts."""
    if not state.failure or (state.failed_until is not None and state.failed_until <= now):
        return ""
    return state.failure
