"""What a node says about its own end: the clouds' notices of reclaimed spot machines, lost and stopping nodes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["has_spot_notice", "is_spot", "is_unreachable"]

# Put on a node by the tools that hear the cloud's notice.
_NOTICE_TAINTS = frozenset(
    {
        "aws-node-termination-handler/spot-itn",
        "aws-node-termination-handler/rebalance-recommendation",
        "cloud.google.com/impending-node-termination",
        "cloudprovider.azure.microsoft.com/draining",
    }
)
# AKS puts this one on for every scheduled event; on a spot machine that is its end.
_NOTICE_TAINTS_ON_SPOT = frozenset(
    {
        "remediator.kubernetes.azure.com/unschedulable",
        "remediator.aks.microsoft.com/unschedulable",
        "aws-node-termination-handler/asg-lifecycle-termination",
    }
)
_NOTICE_CONDITIONS = frozenset({"PreemptScheduled"})
# Karpenter writes these on the node and on its pods, AKS on the node.
_NOTICE_EVENTS = frozenset({"SpotInterrupted", "SpotRebalanceRecommendation", "PreemptScheduled", "SpotEviction"})
_SPOT_LABELS = (
    ("karpenter.sh/capacity-type", "spot"),
    ("eks.amazonaws.com/capacityType", "SPOT"),
    ("cloud.google.com/gke-spot", "true"),
    ("cloud.google.com/gke-preemptible", "true"),
    ("kubernetes.azure.com/scalesetpriority", "spot"),
    ("airflow-elastic.io/capacity-type", "spot"),
)


def is_spot(node: Mapping[str, Any] | None) -> bool:
    """Tell whether a node object is a spot (preemptible) machine of a cloud, by the labels that clouds put on."""
    labels = _metadata(node).get("labels") or {}
    return any(labels.get(key) == value for key, value in _SPOT_LABELS)


def has_spot_notice(node: Mapping[str, Any] | None, events: Iterable[Mapping[str, Any]] = ()) -> bool:
    """Tell whether the cloud has said that it takes this machine back.

    ``events`` are those of the pod and of its node.
    """
    if any(str(event.get("reason")) in _NOTICE_EVENTS for event in events):
        return True
    if node is None:
        return False
    taints = {str(taint.get("key")) for taint in (node.get("spec") or {}).get("taints") or ()}
    if taints & _NOTICE_TAINTS or (is_spot(node) and taints & _NOTICE_TAINTS_ON_SPOT):
        return True
    return any(
        condition.get("type") in _NOTICE_CONDITIONS and condition.get("status") == "True"
        for condition in (node.get("status") or {}).get("conditions") or ()
    )


def is_unreachable(node: Mapping[str, Any] | None) -> bool:
    """Tell whether nobody hears of a node: None for a node that does not exist, or one whose kubelet is silent.

    A kubelet that says itself that it is not ready still ends pods when it is told to; that node is not unreachable.
    """
    if node is None:
        return True
    for condition in (node.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Ready":
            return bool(condition.get("status") == "Unknown")
    return False


def _metadata(node: Mapping[str, Any] | None) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (node or {}).get("metadata") or {}
    return found
