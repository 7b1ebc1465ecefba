"""The labels by which managers of nodes tell their node pools apart, and what else nodes say about themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airflow_elastic.config.names import label_key, label_value
from airflow_elastic.config.values import Wrong
from airflow_elastic.model.labels import GROUP
from airflow_elastic.model.node_pool import CapacityType, Taint

__all__ = [
    "BOOT_SECONDS",
    "POOL_LABELS",
    "capacity_type_of",
    "is_control_plane",
    "lasting_taints",
]

POOL_LABELS: tuple[str, ...] = (
    f"{GROUP}/node-pool",
    "karpenter.sh/nodepool",
    "karpenter.sh/provisioner-name",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "alpha.eksctl.io/nodegroup-name",
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "alibabacloud.com/nodepool-id",
    "node.alibabacloud.com/nodepool-id",
    "cloud.tencent.com/node-pool-id",
    "doks.digitalocean.com/node-pool",
    "k8s.scaleway.com/pool-name",
    "lke.linode.com/pool-id",
    "nodepool.ovhcloud.com/name",
    "kops.k8s.io/instancegroup",
    "worker.gardener.cloud/pool",
    "cluster.x-k8s.io/deployment-name",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
)
"""In order: a node belongs to the pool that the first of these labels names."""

BOOT_SECONDS: dict[str, float] = {
    f"{GROUP}/node-pool": 30.0,
    "karpenter.sh/nodepool": 60.0,
}
"""First guesses of boot times where the manager of the pool makes a difference; 90 s otherwise."""

_CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")

# label → value (folded to lower case, "_" as "-") → how it is paid for
_CAPACITY_LABELS: tuple[tuple[str, Mapping[str, CapacityType]], ...] = (
    (f"{GROUP}/capacity-type", {each.value: each for each in CapacityType}),
    ("karpenter.sh/capacity-type", {each.value: each for each in CapacityType}),
    ("eks.amazonaws.com/capacitytype", {"spot": CapacityType.SPOT, "capacity-block": CapacityType.RESERVED}),
    ("cloud.google.com/gke-spot", {"true": CapacityType.SPOT}),
    ("cloud.google.com/gke-preemptible", {"true": CapacityType.SPOT}),
    ("kubernetes.azure.com/scalesetpriority", {"spot": CapacityType.SPOT}),
    ("node.kubernetes.io/lifecycle", {"spot": CapacityType.SPOT}),
)

# Taints that come and go with a node's condition say nothing about its pool.
_PASSING_PREFIXES = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "karpenter.sh/", f"{GROUP}/release")
_PASSING_KEYS = frozenset(
    {
        "ToBeDeletedByClusterAutoscaler",
        "DeletionCandidateOfClusterAutoscaler",
        "cluster-autoscaler.kubernetes.io/starting",
        "startup-taint.cluster-autoscaler.kubernetes.io/starting",
        "cloud.google.com/impending-node-termination",
        "aws-node-termination-handler/spot-itn",
        "node.cilium.io/agent-not-ready",
        "ebs.csi.aws.com/agent-not-ready",
        "efs.csi.aws.com/agent-not-ready",
    }
)
_EFFECTS = frozenset({"NoSchedule", "PreferNoSchedule", "NoExecute"})


def is_control_plane(labels: Mapping[str, str]) -> bool:
    """Tell whether a node carries the cluster's own control plane: no pool of tasks."""
    return any(label in labels for label in _CONTROL_PLANE)


def capacity_type_of(labels: Mapping[str, str]) -> CapacityType:
    """Return how a node is paid for, on-demand where it does not say."""
    folded = {key.lower(): value.lower().replace("_", "-") for key, value in labels.items()}
    for label, meanings in _CAPACITY_LABELS:
        meaning = meanings.get(folded.get(label, ""))
        if meaning is not None:
            return meaning
    return CapacityType.ON_DEMAND


def lasting_taints(taints: Iterable[object]) -> frozenset[Taint]:
    """Return the taints of a node (Kubernetes dicts) that its pool gave it."""
    found = set()
    for taint in taints:
        if not isinstance(taint, Mapping):
            continue
        key, effect = str(taint.get("key") or ""), str(taint.get("effect") or "")
        if effect not in _EFFECTS or key in _PASSING_KEYS or key.startswith(_PASSING_PREFIXES):
            continue
        try:
            found.add(Taint(label_key(key), label_value(taint.get("value") or ""), effect))
        except Wrong:
            continue
    return frozenset(found)
