"""Affinity and anti-affinity between pods, required and preferred, over any topology label."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from airflow_elastic.embedded.scheduler.infos import NodeInfo, PodInfo
from airflow_elastic.embedded.selectors import selector_matches
from airflow_elastic.embedded.types import Object

__all__ = ["blocked_nodes", "has_terms", "preferences"]

AFFINITY_UNMET = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY_UNMET = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def has_terms(pod: PodInfo) -> bool:
    """Tell whether a pod says anything about other pods."""
    return bool(pod.constraints.pod_affinity)


def blocked_nodes(pod: PodInfo, nodes: Mapping[str, NodeInfo], with_anti: Iterable[PodInfo]) -> dict[str, str]:
    """Return the nodes where other pods forbid this one, with the reason.

    ``with_anti`` are the placed pods that have required anti-affinity terms of their own.
    """
    blocked: dict[str, str] = {}
    affinity = pod.constraints.pod_affinity
    for term in _terms(affinity, "podAffinity"):
        domains = _domains(term, pod, nodes)
        key = term.get("topologyKey", "")
        # The first pod of a group that wants to be together may go anywhere.
        alone = not domains and _selects(term, pod, pod)
        for name, node in nodes.items():
            if key not in node.labels or (node.labels[key] not in domains and not alone):
                blocked.setdefault(name, AFFINITY_UNMET)
    for term in _terms(affinity, "podAntiAffinity"):
        domains = _domains(term, pod, nodes)
        key = term.get("topologyKey", "")
        for name, node in nodes.items():
            if node.labels.get(key) in domains:
                blocked.setdefault(name, ANTI_AFFINITY_UNMET)
    for other in with_anti:
        home = nodes.get(other.node)
        for term in _terms(other.constraints.pod_affinity, "podAntiAffinity"):
            if home is None or not _selects(term, other, pod):
                continue
            key = term.get("topologyKey", "")
            for name, node in nodes.items():
                if key in home.labels and node.labels.get(key) == home.labels[key]:
                    blocked.setdefault(name, EXISTING_ANTI_AFFINITY)
    return blocked


def preferences(pod: PodInfo, nodes: Mapping[str, NodeInfo]) -> dict[str, float]:
    """Return the points that preferred terms give to nodes, positive and negative."""
    points: dict[str, float] = {}
    for kind, sign in (("podAffinity", 1.0), ("podAntiAffinity", -1.0)):
        for preference in (pod.constraints.pod_affinity.get(kind) or {}).get(_PREFERRED) or ():
            term = preference.get("podAffinityTerm") or {}
            domains = _domains(term, pod, nodes)
            for name, node in nodes.items():
                if node.labels.get(term.get("topologyKey", "")) in domains:
                    points[name] = points.get(name, 0.0) + sign * float(preference.get("weight", 1))
    return points


def _terms(affinity: Object, kind: str) -> list[Object]:
    terms: Any = (affinity.get(kind) or {}).get(_REQUIRED) or []
    return list(terms)


def _domains(term: Object, pod: PodInfo, nodes: Mapping[str, NodeInfo]) -> set[str]:
    key = term.get("topologyKey", "")
    return {
        node.labels[key]
        for node in nodes.values()
        if key in node.labels and any(_selects(term, pod, other) for other in node.pods.values() if other is not pod)
    }


def _selects(term: Object, owner: PodInfo, other: PodInfo) -> bool:
    namespaces = term.get("namespaces") or []
    if term.get("namespaceSelector") is None and other.key[0] not in (namespaces or [owner.key[0]]):
        return False
    return selector_matches(term.get("labelSelector"), other.entry.labels)
