"""Which nodes go, and why each of the others stays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from airflow_elastic.model.plan import Refusal
from airflow_elastic.model.reasons import Reason, ReasonCode
from airflow_elastic.model.settings import ScalingRules
from airflow_elastic.model.snapshot import Node
from airflow_elastic.planning.pools import PoolView

__all__ = ["NextNeed", "Released", "choose_release", "kept_nodes"]


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
class NextNeed:
    """What needs a pool next, for the sentence about a node that stays."""

    label: str = ""
    in_seconds: float = 0.0


def cooling_seconds(scaling: ScalingRules, grew_at: float | None, now: float) -> float | None:
    """Return how long ago the pool grew while its cool-down lasts, else None."""
    if grew_at is None:
        return None
    ago = max(now - grew_at, 0.0)
    return ago if ago < scaling.scale_in_cooldown_seconds else None


def choose_release(
    view: PoolView, surplus: int, task_pods: Mapping[str, int], idle_since: Mapping[str, float], now: float
) -> Released:
    """Choose up to ``surplus`` nodes: first those not here yet, then booting ones, then the longest idle.

    A node with a pod of ours, or that says why it must not go, is never chosen. Unusable nodes are not ours to judge:
    an administrator cordoned them, or they are broken and their pods are still being looked for.
    """
    if surplus <= 0:
        return Released()
    not_coming = min(surplus, view.coming)

    def may_go(node: Node) -> bool:
        return not task_pods.get(node.name) and not node.blocks_release

    booting = sorted((n for n in view.booting if may_go(n)), key=lambda n: (-n.created_at, n.name))
    idle = sorted((n for n in view.usable if may_go(n)), key=lambda n: (idle_since.get(n.name, now), n.name))
    return Released(tuple(node.name for node in (*booting, *idle))[: surplus - not_coming], not_coming)


def kept_nodes(
    view: PoolView,
    released: Released,
    task_pods: Mapping[str, int],
    scaling: ScalingRules,
    grew_at: float | None,
    need: NextNeed,
    keep: int,
    idle_since: Mapping[str, float],
    now: float,
) -> list[Refusal]:
    """Return why each node of the pool stays, when ``keep`` nodes in all are needed soon."""
    cooling = cooling_seconds(scaling, grew_at, now)
    gone = set(released.nodes)
    kept = []
    wanted_idle = keep - sum(1 for node in (*view.usable, *view.booting) if task_pods.get(node.name))
    standing = sorted(view.usable, key=lambda n: (-idle_since.get(n.name, now), n.name))
    for node in (*standing, *view.booting, *view.unusable):
        if node.name in gone:
            continue
        if task_pods.get(node.name):
            reason = Reason.of(ReasonCode.KEPT_BUSY, node=node.name, pods=task_pods[node.name])
        elif node.blocks_release or not view.is_managed or node in view.unusable:
            reason = Reason.of(ReasonCode.KEPT_BLOCKED, node=node.name, why=_why_blocked(view, node))
        elif need.label and wanted_idle > 0:
            wanted_idle -= 1
            reason = Reason.of(
                ReasonCode.KEPT_SOON_NEEDED,
                node=node.name,
                needed_by=need.label,
                in_seconds=need.in_seconds,
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
