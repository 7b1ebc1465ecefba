"""Preemption: the fewest and least important pods that make room for a more important one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from airflow_elastic.embedded.scheduler.filters import judge
from airflow_elastic.embedded.scheduler.infos import NodeInfo, PodInfo

__all__ = ["Eviction", "find_victims"]


@dataclass(frozen=True, slots=True)
class Eviction:
    """A node and the pods that have to go from it."""

    node: NodeInfo
    victims: tuple[PodInfo, ...]
    budget_violations: int


def find_victims(pod: PodInfo, nodes: Iterable[NodeInfo], budget_allows: Callable[[PodInfo], bool]) -> Eviction | None:
    """Return the cheapest way to make room for a pod, None where there is none.

    Cheapest: fewest budgets violated, then the lowest highest priority among the victims, the lowest sum of
    priorities, the fewest victims, and last the pods that started latest (as kube-scheduler ranks).
    """
    best: Eviction | None = None
    best_rank: tuple[float, ...] = ()
    for node in nodes:
        if judge(pod.constraints, node).reason:
            continue
        found = _on_node(pod, node, budget_allows)
        if found is None:
            continue
        rank = _rank(found)
        if best is None or rank < best_rank:
            best, best_rank = found, rank
    return best


def _rank(eviction: Eviction) -> tuple[float, ...]:
    priorities = [victim.priority for victim in eviction.victims]
    oldest = min(victim.created for victim in eviction.victims)
    return (
        eviction.budget_violations,
        max(priorities),
        # Shifted by 2**31, as in kube-scheduler, so that more victims of negative priority are not "less".
        sum(priority + 2**31 for priority in priorities),
        len(priorities),
        -oldest,
    )


def _on_node(pod: PodInfo, node: NodeInfo, budget_allows: Callable[[PodInfo], bool]) -> Eviction | None:
    lower = [other for other in node.pods.values() if other.priority < pod.priority]
    if not lower:
        return None
    free = {name: node.free.get(name, 0) + sum(other.requests.get(name, 0) for other in lower) for name in pod.requests}
    if any(amount > free[name] for name, amount in pod.requests.items()):
        return None
    for name, amount in pod.requests.items():
        free[name] -= amount
    # Reprieve as many as possible: those whose budget forbids it first, then the most important and oldest.
    allowed = {other.uid: budget_allows(other) for other in lower}
    lower.sort(key=lambda other: (allowed[other.uid], -other.priority, other.created))
    victims = []
    for other in lower:
        if all(other.requests.get(name, 0) <= room for name, room in free.items()):
            for name in free:
                free[name] -= other.requests.get(name, 0)
        else:
            victims.append(other)
    if not victims:
        return None
    violations = sum(1 for victim in victims if not allowed[victim.uid])
    return Eviction(node, tuple(victims), violations)
