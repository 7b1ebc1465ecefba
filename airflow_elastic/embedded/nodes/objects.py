"""Node objects as kubelets register them."""

from __future__ import annotations

import secrets

from airflow_elastic.embedded import timestamps
from airflow_elastic.embedded.config import NodePoolConfig
from airflow_elastic.embedded.registry.conditions import with_condition
from airflow_elastic.embedded.registry.writer import new_uid
from airflow_elastic.embedded.types import Object

__all__ = ["POOL_LABEL", "new_node", "node_labels", "not_ready_taints", "with_ready", "without_taints"]

POOL_LABEL = "airflow-elastic.io/node-pool"
_PRESSURES = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)


def not_ready_taints(key: str = "not-ready") -> list[Object]:
    """Return the taints of a node that is not ready (or ``unreachable``)."""
    stamp = timestamps.now()
    full = f"node.kubernetes.io/{key}"
    return [{"key": full, "effect": effect, "timeAdded": stamp} for effect in ("NoSchedule", "NoExecute")]


def node_labels(name: str, pool: NodePoolConfig) -> dict[str, str]:
    """Return the labels of a pool's node."""
    return {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "node.kubernetes.io/instance-type": pool.instance_type or f"embedded.{pool.name}-{pool.allocatable['cpu']}",
        "topology.kubernetes.io/zone": pool.zone,
        "topology.kubernetes.io/region": pool.zone.rpartition("-")[0] or pool.zone,
        "airflow-elastic.io/capacity-type": pool.capacity_type,
        **pool.labels,
        POOL_LABEL: pool.name,
    }


def new_node(name: str, pool: NodePoolConfig, index: int, version: str) -> Object:
    """Return a Node that has just registered: not ready, and tainted so."""
    ip = f"10.{index >> 16 & 255}.{index >> 8 & 255}.{index & 255}"
    capacity = {resource: str(amount) for resource, amount in pool.allocatable.items()}
    node: Object = {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "uid": new_uid(),
            "creationTimestamp": timestamps.now(),
            "labels": node_labels(name, pool),
            "annotations": {"node.alpha.kubernetes.io/ttl": "0"},
        },
        "spec": {
            "podCIDR": f"10.{128 + (index >> 8 & 127)}.{index & 255}.0/24",
            "podCIDRs": [f"10.{128 + (index >> 8 & 127)}.{index & 255}.0/24"],
            "providerID": f"embedded://{pool.zone}/{name}",
            "taints": [*(dict(taint) for taint in pool.taints), *not_ready_taints()],
        },
        "status": {
            "capacity": capacity,
            "allocatable": dict(capacity),
            "conditions": _conditions(),
            "addresses": [{"type": "InternalIP", "address": ip}, {"type": "Hostname", "address": name}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": _node_info(version),
            "images": [],
        },
    }
    return node


def _node_info(version: str) -> Object:
    return {
        "machineID": secrets.token_hex(16),
        "systemUUID": new_uid(),
        "bootID": new_uid(),
        "kernelVersion": "6.12.0-embedded",
        "osImage": "airflow-elastic embedded node",
        "containerRuntimeVersion": "embedded://1.0.0",
        "kubeletVersion": version,
        "kubeProxyVersion": version,
        "operatingSystem": "linux",
        "architecture": "amd64",
    }


def _condition(type_: str, status: str, reason: str, message: str) -> Object:
    stamp = timestamps.now()
    return {
        "type": type_,
        "status": status,
        "lastHeartbeatTime": stamp,
        "lastTransitionTime": stamp,
        "reason": reason,
        "message": message,
    }


def _conditions() -> list[Object]:
    calm = [_condition(type_, "False", reason, message) for type_, reason, message in _PRESSURES]
    message = "container runtime network not ready: NetworkReady=false"
    return [*calm, _condition("Ready", "False", "KubeletNotReady", message)]


def without_taints(node: Object, *keys: str) -> list[Object]:
    """Return the node's taints without those of the named keys."""
    return [taint for taint in node["spec"].get("taints") or () if taint["key"] not in keys]


def with_ready(node: Object, status: str) -> Object:
    """Return the node with its Ready condition and taints set to True, False or Unknown."""
    if status == "True":
        ready = _condition("Ready", "True", "KubeletReady", "kubelet is posting ready status")
    else:
        ready = _condition("Ready", status, "NodeStatusUnknown", "Kubelet stopped posting node status.")
    conditions = with_condition(node["status"]["conditions"], ready)
    if status == "Unknown":
        unknown = [(kind, "NodeStatusUnknown", "Kubelet stopped posting node status.") for kind, _, _ in _PRESSURES]
        for kind, reason, message in unknown:
            conditions = with_condition(conditions, _condition(kind, "Unknown", reason, message))
    taints = without_taints(node, "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    if status != "True":
        taints += not_ready_taints("unreachable" if status == "Unknown" else "not-ready")
    spec = {key: value for key, value in node["spec"].items() if key != "taints"}
    if taints:
        spec["taints"] = taints
    return {
        **node,
        "metadata": dict(node["metadata"]),
        "spec": spec,
        "status": {**node["status"], "conditions": conditions},
    }
