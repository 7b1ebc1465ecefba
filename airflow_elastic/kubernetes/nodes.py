"""A Kubernetes node as the model's ``Node``: is it usable, is it on its way, is it going. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_elastic.kubernetes.quantities import amounts_of, unix_seconds
from airflow_elastic.model.labels import ANNOTATION_RELEASE
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resources
from airflow_elastic.model.settings import Settings

__all__ = ["NodeFacts", "map_node", "node_pool_of"]

# An autoscaler is already removing a node that carries one of these, whatever the effect says.
_LEAVING_TAINTS = ("ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted")
_CANDIDATE_TAINT = "DeletionCandidateOf"
# These are removed by themselves once the node has finished starting.
_STARTUP_TAINTS = (
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/network-unavailable",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "karpenter.sh/unregistered",
    "readiness.k8s.io/",
    "node.cilium.io/agent-not-ready",
    "startup-taint.cluster-autoscaler.kubernetes.io/",
)
_KEEP_ANNOTATIONS = ("cluster-autoscaler.kubernetes.io/scale-down-disabled", "karpenter.sh/do-not-disrupt")
_ORDINARY = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE, PODS})
_HUGEPAGES = "hugepages-"


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What one node object says, before pods and memory are taken into account."""

    name: str
    node_pool: str
    allocatable: Resources
    unusable_because: str
    """Empty: usable."""
    is_starting: bool
    """What makes it unusable passes by itself on a node that has just come."""
    is_releasing: bool
    is_lost: bool
    created_at: float
    ready_since: float | None
    blocks_release: str


def node_pool_of(labels: Mapping[str, str], settings: Settings) -> NodePool | None:
    """Return the first declared pool whose selector the labels satisfy, or None: a node that is none of ours."""
    for pool in settings.node_pools:
        if pool.selector and all(labels.get(key) == value for key, value in pool.selector):
            return pool
    return None


def map_node(node: Mapping[str, Any], settings: Settings) -> NodeFacts | None:
    """Return the facts of a node object, or None where no declared pool selects it."""
    metadata = node.get("metadata") or {}
    pool = node_pool_of(metadata.get("labels") or {}, settings)
    if pool is None:
        return None
    spec = node.get("spec") or {}
    status = node.get("status") or {}
    annotations = metadata.get("annotations") or {}
    allocatable = amounts_of(status.get("allocatable") or status.get("capacity"))
    created_at = unix_seconds(metadata.get("creationTimestamp")) or 0.0
    ready = next((each for each in status.get("conditions") or () if each.get("type") == "Ready"), None)
    taints = spec.get("taints") or ()
    leaving = (
        bool(metadata.get("deletionTimestamp"))
        or ANNOTATION_RELEASE in annotations
        or any(str(taint.get("key", "")).startswith(_LEAVING_TAINTS) for taint in taints)
    )
    why, is_starting = _why_unusable(metadata, spec, ready, taints, pool, allocatable, created_at)
    keep = next((key for key in _KEEP_ANNOTATIONS if str(annotations.get(key, "")) not in ("", "false")), "")
    return NodeFacts(
        name=str(metadata.get("name", "")),
        node_pool=pool.name,
        allocatable=allocatable,
        unusable_because=why,
        is_starting=is_starting and not leaving,
        is_releasing=leaving,
        is_lost=ready is not None and ready.get("status") != "True" and not _never_was_ready(ready, created_at),
        created_at=created_at,
        ready_since=unix_seconds(ready.get("lastTransitionTime")) if ready and ready.get("status") == "True" else None,
        blocks_release=f"the annotation {keep} keeps it" if keep else "",
    )


def _why_unusable(
    metadata: Mapping[str, Any],
    spec: Mapping[str, Any],
    ready: Mapping[str, Any] | None,
    taints: Any,
    pool: NodePool,
    allocatable: Resources,
    created_at: float,
) -> tuple[str, bool]:
    """Return why a node is not usable (empty: it is), and whether that passes by itself on a new node."""
    if metadata.get("deletionTimestamp"):
        return "it is being deleted", False
    leaving = next((key for each in taints if (key := str(each.get("key", ""))).startswith(_LEAVING_TAINTS)), "")
    if leaving:
        return f"it is being removed (taint {leaving})", False
    if spec.get("unschedulable"):
        return "it is cordoned", False
    if ready is None:
        return "it has not reported Ready yet", True
    if ready.get("status") != "True":
        return f"it is not Ready ({ready.get('reason') or 'no reason given'})", _never_was_ready(ready, created_at)
    taint, passes = _blocking_taint(taints, pool)
    if taint:
        return (f"the start-up taint {taint} is still there", True) if passes else (f"the taint {taint} bars it", False)
    missing = [
        name
        for name in pool.shape.names
        if name not in _ORDINARY and not name.startswith(_HUGEPAGES) and allocatable.get(name) <= 0
    ]
    if missing:
        return f"it offers no {', '.join(missing)} yet (device plugin not ready)", True
    return "", False


def _blocking_taint(taints: Any, pool: NodePool) -> tuple[str, bool]:
    """Return the worst taint that the pool does not declare as ``key:effect``, and whether it passes by itself."""
    passing = ""
    for taint in taints:
        key, value, effect = str(taint.get("key", "")), str(taint.get("value") or ""), str(taint.get("effect", ""))
        if key.startswith(_CANDIDATE_TAINT):
            return f"{key}:{effect}", False
        if effect == "PreferNoSchedule" or key == "node.kubernetes.io/unschedulable":
            continue  # a wish only; or the shadow of a cordon, which spec.unschedulable tells
        if any(
            each.key == key and each.effect in ("", effect) and (not each.value or each.value == value)
            for each in pool.taints
        ):
            continue
        if key.startswith(_STARTUP_TAINTS):
            passing = passing or f"{key}:{effect}"
        else:
            return f"{key}:{effect}", False
    return passing, bool(passing)


def _never_was_ready(ready: Mapping[str, Any], created_at: float) -> bool:
    # A kubelet reports Ready=False from its registration on; a node that fell over later changed its condition later.
    if ready.get("status") == "Unknown":
        return False
    changed_at = unix_seconds(ready.get("lastTransitionTime"))
    return changed_at is None or changed_at - created_at <= _REGISTRATION_SECONDS


_REGISTRATION_SECONDS = 30.0
