"""Why a pod found no node, in kube-scheduler's words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from airflow_elastic.embedded.scheduler.infos import NodeInfo, PodInfo

__all__ = ["insufficient", "preemption", "unschedulable"]

_TOO_MANY_PODS = "Too many pods"


def insufficient(resource: str) -> str:
    """Return the reason for a node on which too little of a resource is free."""
    return _TOO_MANY_PODS if resource == "pods" else f"Insufficient {resource}"


def unschedulable(nodes: int, refused: Sequence[tuple[NodeInfo, str]], note: str) -> str:
    """Return ``0/3 nodes are available: 1 Insufficient cpu, 2 node(s) …``."""
    if not nodes:
        return "no nodes available to schedule pods"
    counted = Counter(reason for _, reason in refused)
    reasons = sorted(f"{count} {reason}" for reason, count in counted.items())
    text = f"0/{nodes} nodes are available: {', '.join(reasons)}."
    return f"{text} {note}" if note else text


def preemption(pod: PodInfo, refused: Sequence[tuple[NodeInfo, str]]) -> str:
    """Return why nothing was preempted."""
    names = {node.name: True for node, _ in refused}
    if not pod.preempts:
        return "preemption: not eligible due to preemptionPolicy=Never."
    for node, reason in refused:
        if not reason.startswith(("Insufficient", _TOO_MANY_PODS)):
            names[node.name] = False
    helpless = sum(1 for could in names.values() if not could)
    victimless = len(names) - helpless
    parts = []
    if victimless:
        parts.append(f"{victimless} No preemption victims found for incoming pod")
    if helpless:
        parts.append(f"{helpless} Preemption is not helpful for scheduling")
    return f"preemption: 0/{len(names)} nodes are available: {', '.join(sorted(parts))}."
