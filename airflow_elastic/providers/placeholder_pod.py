"""The placeholder's pod: shape, name, owner. Pure."""

from __future__ import annotations

from typing import Any

from airflow_elastic.model.labels import (
    ANNOTATION_DAG_ID,
    ANNOTATION_EXPIRES_AT,
    ANNOTATION_RUN_ID,
    LABEL_MANAGED_BY,
    LABEL_PLACEHOLDER,
    LABEL_RESERVATION,
    MANAGED_BY,
    PLACEHOLDER_PRIORITY_CLASS,
)
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from airflow_elastic.providers.base import PoolFacts, WarmShare

__all__ = ["PRIORITY_CLASS", "owner_marks", "placeholder_name", "placeholder_pod", "placeholder_size"]

_IMAGE = "registry.k8s.io/pause:3.10"
_UNSEEN_SHARE = 0.75
"""Of the shape, while no node of the pool was seen: more than half, so that only one fits, and room for daemonsets."""
_HALF = 0.5

PRIORITY_CLASS: dict[str, Any] = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": PLACEHOLDER_PRIORITY_CLASS, "labels": {LABEL_MANAGED_BY: MANAGED_BY}},
    # −10: every real pod preempts it; one less and cluster-autoscaler brings no node for it.
    "value": -10,
    "globalDefault": False,
    "preemptionPolicy": "Never",
    "description": "Placeholders of airflow-elastic: hold a warm node until a task takes it.",
}


def placeholder_name(reservation_id: str, index: int) -> str:
    """Return the deterministic name: whoever asks for the same node again finds the pod that asks for it already."""
    return f"elastic-placeholder-{reservation_id}-{index}"


def placeholder_size(facts: PoolFacts) -> dict[str, str]:
    """Return requests with which one placeholder, and only one, fits on an empty node of the pool.

    That is the node's shape less what daemonsets take there: the least that others take on any node seen usable.
    """
    seen = [node for node in facts.nodes if node.usable and not node.is_releasing]
    size: dict[str, str] = {}
    for name, amount in facts.pool.shape.amounts:
        if name in (PODS, EPHEMERAL_STORAGE):
            continue
        if seen:
            offered = min(amount, *(node.allocatable.get(name) for node in seen))
            left = offered - min(node.foreign.get(name) for node in seen)
            # Half and a bit is the least that keeps a second one out.
            amount = max(left, int(amount * _HALF) + 1)
        elif name in (CPU, MEMORY):
            amount = int(amount * _UNSEEN_SHARE)
        size[name] = f"{amount}m" if name == CPU else str(amount)
    return size


def owner_marks(share: WarmShare) -> dict[str, dict[str, str]]:
    """Return the labels and annotations that say whose a placeholder is and until when."""
    return {
        "labels": {LABEL_RESERVATION: share.reservation_id},
        "annotations": {
            ANNOTATION_DAG_ID: share.dag_id,
            ANNOTATION_RUN_ID: share.run_id,
            ANNOTATION_EXPIRES_AT: f"{share.expires_at:.3f}",
        },
    }


def placeholder_pod(
    name: str, pool: NodePool, namespace: str, share: WarmShare, size: dict[str, str]
) -> dict[str, Any]:
    """Return the pod as the Kubernetes API takes it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {LABEL_MANAGED_BY: MANAGED_BY, LABEL_PLACEHOLDER: "true", **owner_marks(share)["labels"]},
            "annotations": {
                **owner_marks(share)["annotations"],
                # It exists to hold its node: no autoscaler may move it and take the node.
                "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
                "karpenter.sh/do-not-disrupt": "true",
            },
        },
        "spec": {
            "priorityClassName": PLACEHOLDER_PRIORITY_CLASS,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "nodeSelector": dict(pool.selector),
            "tolerations": [
                {
                    "key": taint.key,
                    "operator": "Equal" if taint.value else "Exists",
                    **({"value": taint.value} if taint.value else {}),
                    **({"effect": taint.effect} if taint.effect else {}),
                }
                for taint in pool.taints
            ],
            "containers": [
                {
                    "name": "placeholder",
                    "image": pool.option("placeholder_image", _IMAGE),
                    "resources": {"requests": dict(size)},
                }
            ],
        },
    }
