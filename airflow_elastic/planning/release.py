"""Which nodes go, and why each of the others stays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_elastic.model.plan import Refusal
from airflow_elastic.model.reasons import Reason, ReasonCode
from airflow_elastic.model.settings import ScalingRules
from airflow_elastic.model.snapshot import Node
from airflow_elastic.planning.pools import PoolView

__all__ = ["Released", "Standing", "Uses", "choose_release", "cooling_seconds", "kept_nodes"]


@dataclass(frozen=True, slots=True)
class Released:
    """What a pool gives back: nodes by name, and nodes asked for that need not come."""

    nodes: tuple[str, ...] = ()
    not_coming: int = 0

    @property
    def count(self) -> int:
        """Return how many nodes fewer the pool will have."""
        return len(self.nodes) + self.not_coming


@dataclass(frozen=True, slots=True)
class Uses:
    """What will use a pool's nodes: by node, and beyond that for whatever nodes are held ready."""

    by_node: Mapping[str, tuple[float, str]]
    """(seconds until then, what) of each node that a coming or waiting pod is planned on within the window."""
    held: tuple[float, str] = (0.0, "")
    """(seconds until then, which run) of nodes that an annotation holds; empty: none."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of the nodes that stand: task pods by node, and since when the others are idle."""

    task_pods: Mapping[str, int]
    idle_since: Mapping[str, float]
    now: float
    uncollected: Mapping[str, int] = field(default_factory=dict)
    """Finished pods by node whose tasks have not been picked up: their logs and results are still on the node."""

    def is_free(self, node: Node) -> bool:
        """Tell whether nothing forbids that the node goes."""
        busy = self.task_pods.get(node.name) or self.uncollected.get(node.name)
        return not busy and not node.blocks_release

    def idle_from(self, node: Node) -> tuple[float, str]:
        """Return a key by which the longest idle node is the smallest."""
        return self.idle_since.get(node.name, self.now), node.name


def cooling_seconds(scaling: ScalingRules, grew_at: float | None, now: float) -> float | None:
    """Return how long ago the pool grew while its cool-down lasts, else None."""
    if grew_at is None:
        return None
    ago = max(now - grew_at, 0.0)
    return ago if ago < scaling.scale_in_cooldown_seconds else None


def choose_release(view: PoolView, surplus: int, standing: Standing, uses: Uses) -> Released:
    """Choose up to ``surplus`` nodes: first those not here yet, then booting ones, then the longest idle.

    A node with a pod of ours, one that says why it must not go, and one that a pod is planned on are never chosen.
    Unusable nodes are not ours to judge: an administrator cordoned them, or they are broken and come back or not.
    """
    if surplus <= 0:
        return Released()
    not_coming = min(surplus, view.coming)
    booting = sorted(view.booting, key=lambda node: (-node.created_at, node.name))
    idle = sorted(view.usable, key=standing.idle_from)
    free = [node.name for node in (*booting, *idle) if standing.is_free(node) and node.name not in uses.by_node]
    return Released(tuple(free[: surplus - not_coming]), not_coming)


def kept_nodes(
    view: PoolView, released: Released, standing: Standing, uses: Uses, held_nodes: int, cooling: float | None,
    scaling: ScalingRules,
) -> list[Refusal]:  # fmt: skip
    """Return why each node of the pool stays; ``held_nodes`` of the idle ones are held by annotations."""
    gone = set(released.nodes)
    kept = []
    for node in (*sorted(view.usable, key=standing.idle_from, reverse=True), *view.booting, *view.unusable):
        if node.name in gone:
            continue
        pods = standing.task_pods.get(node.name, 0)
        in_seconds, label = uses.by_node.get(node.name, (0.0, ""))
        if not pods and not label and held_nodes > 0:
            held_nodes -= 1
            in_seconds, label = uses.held
        if pods:
            reason = Reason.of(ReasonCode.KEPT_BUSY, node=node.name, pods=pods)
        elif uncollected := standing.uncollected.get(node.name, 0):
            reason = Reason.of(ReasonCode.KEPT_UNCOLLECTED, node=node.name, pods=uncollected)
        elif node.blocks_release or not view.is_managed or node in view.unusable:
            reason = Reason.of(ReasonCode.KEPT_BLOCKED, node=node.name, why=_why_blocked(view, node))
        elif label:
            reason = Reason.of(
                ReasonCode.KEPT_SOON_NEEDED,
                node=node.name,
                needed_by=label,
                in_seconds=in_seconds,
                hold_seconds=view.window_seconds,
            )
        elif cooling is not None:
            reason = Reason.of(
                ReasonCode.KEPT_COOLDOWN,
                node=node.name,
                node_pool=view.name,
                ago_seconds=cooling,
                cooldown_seconds=scaling.scale_in_cooldown_seconds,
            )
        else:
            reason = Reason.of(ReasonCode.KEEP_MINIMUM, node_pool=view.name, nodes=view.pool.min_nodes)
        kept.append(Refusal(node.name, reason))
    return kept


def _why_blocked(view: PoolView, node: Node) -> str:
    if node.blocks_release:
        return node.blocks_release
    if not view.is_managed:
        return f"{view.name} has the provider 'none': its nodes are not ours to remove"
    return f"it is not usable ({node.unusable_because or 'no reason given'}); an administrator or its provider decides"
