"""Which of the nodes that fit is best."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_elastic.embedded.registry.requests import Amounts
from airflow_elastic.embedded.scheduler.filters import Verdict
from airflow_elastic.embedded.scheduler.infos import NodeInfo

__all__ = ["choose"]

# The weights of kube-scheduler's default profile.
_TAINT_WEIGHT = 3.0
_AFFINITY_WEIGHT = 2.0


def choose(
    feasible: Sequence[tuple[NodeInfo, Verdict]],
    requests: Amounts,
    *,
    packing: bool,
    bonus: dict[str, float] | None = None,
) -> NodeInfo:
    """Return the best node: preferred affinity and soft taints first, then the fuller (packing) or emptier node."""
    if len(feasible) == 1:
        return feasible[0][0]
    most_weight = max((verdict.preferred_weight for _, verdict in feasible), default=0)
    most_avoided = max((verdict.avoided_taints for _, verdict in feasible), default=0)
    best, best_score = feasible[0][0], -1.0
    for node, verdict in feasible:
        score = _allocation(node, requests, packing)
        if most_weight:
            score += _AFFINITY_WEIGHT * 100 * verdict.preferred_weight / most_weight
        if most_avoided:
            score += _TAINT_WEIGHT * 100 * (1 - verdict.avoided_taints / most_avoided)
        if bonus:
            score += bonus.get(node.name, 0.0)
        if score > best_score:
            best, best_score = node, score
    return best


def _allocation(node: NodeInfo, requests: Amounts, packing: bool) -> float:
    """Return 0 … 100: how empty (or, packing, how full) cpu and memory would be with the pod."""
    total = 0.0
    for name in ("cpu", "memory"):
        capacity = node.allocatable.get(name, 0)
        if capacity:
            free = (node.free.get(name, 0) - requests.get(name, 0)) / capacity
            total += 1 - free if packing else free
    return 50 * total
