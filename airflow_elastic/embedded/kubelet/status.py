"""A pod's status as its kubelet reports it."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_elastic.embedded import timestamps
from airflow_elastic.embedded.kubelet.container import Container
from airflow_elastic.embedded.types import Object

__all__ = ["pod_status"]

_OURS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


def pod_status(
    old: Object,
    phase: str,
    init_containers: Sequence[Container],
    containers: Sequence[Container],
    *,
    ip: str,
    host_ip: str,
    start_time: str,
    initialized: bool,
    reason: str = "",
    message: str = "",
) -> Object:
    """Return the whole new status; conditions of others (PodScheduled, DisruptionTarget) are kept."""
    finished = phase in ("Succeeded", "Failed")
    ready = phase == "Running" and all(container.running for container in containers)
    status: Object = {
        **old,
        "phase": phase,
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "startTime": start_time,
        "conditions": _conditions(old.get("conditions") or [], finished, ready, initialized),
        "containerStatuses": [container.status(ready=True) for container in containers],
    }
    if ip:
        status["podIP"] = ip
        status["podIPs"] = [{"ip": ip}]
    if init_containers:
        status["initContainerStatuses"] = [
            {**container.status(ready=True), "ready": container.running or container.exit_code == 0}
            for container in init_containers
        ]
    if reason:
        status["reason"] = reason
    if message:
        status["message"] = message
    return status


def _conditions(old: list[Object], finished: bool, ready: bool, initialized: bool) -> list[Object]:
    stamp = timestamps.now()
    known = {entry["type"]: entry for entry in old}
    why = "PodCompleted" if finished else "ContainersNotReady"
    wanted = (
        ("PodReadyToStartContainers", not finished, ""),
        ("Initialized", initialized, "PodCompleted" if finished else "ContainersNotInitialized"),
        ("Ready", ready, why),
        ("ContainersReady", ready, why),
    )
    conditions = []
    for type_, truth, reason in wanted:
        text = "True" if truth else "False"
        before = known.get(type_)
        since = before["lastTransitionTime"] if before and before["status"] == text else stamp
        entry: Object = {"type": type_, "status": text, "lastProbeTime": None, "lastTransitionTime": since}
        if reason and (not truth or (finished and type_ == "Initialized")):
            entry["reason"] = reason
        conditions.append(entry)
    conditions.extend(entry for entry in old if entry["type"] not in _OURS)
    if "PodScheduled" not in known:
        # Put on its node by its creator: no scheduler has said so.
        placed = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": stamp}
        conditions.append(placed)
    return conditions
