"""Turns changes of pods and nodes into lines of the event log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_elastic.embedded.registry.conditions import find_condition
from airflow_elastic.embedded.registry.pod_deletion import TERMINAL_PHASES
from airflow_elastic.embedded.registry.requests import pod_requests
from airflow_elastic.embedded.store.entry import ADDED, DELETED, Change
from airflow_elastic.embedded.types import Object

if TYPE_CHECKING:
    from airflow_elastic.embedded.plane import ControlPlane

__all__ = ["record_facts"]

PLACEHOLDER_LABEL = "airflow-elastic.io/placeholder"


def record_facts(plane: ControlPlane) -> None:
    """Write facts from now on; costs nothing without an event log."""
    if plane.event_log.enabled:
        recorder = _Facts(plane)
        plane.store("pods").listen(recorder.pod)
        plane.store("nodes").listen(recorder.node)


class _Facts:
    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._log = plane.event_log
        self._unschedulable: set[str] = set()

    def pod(self, change: Change) -> None:
        entry, pod = change.entry, change.entry.obj
        if change.type == DELETED:
            self._unschedulable.discard(entry.uid)
            self._write("pod_deleted", change, node=pod["spec"].get("nodeName") or "", phase=pod["status"]["phase"])
            return
        before: Object = (
            change.previous.obj if change.previous is not None else {"metadata": {}, "spec": {}, "status": {}}
        )
        if change.type == ADDED:
            self._created(change)
        node = pod["spec"].get("nodeName")
        if node and not before["spec"].get("nodeName"):
            self._write("pod_bound", change, node=node)
        phase, old_phase = pod["status"]["phase"], before["status"].get("phase")
        if phase != old_phase:
            if phase == "Running":
                self._write("pod_running", change, node=node)
            elif phase in TERMINAL_PHASES:
                self._write("pod_finished", change, node=node or "", phase=phase, reason=_end_reason(pod))
        if not node and entry.uid not in self._unschedulable:
            scheduled = find_condition(pod, "PodScheduled")
            if scheduled is not None and scheduled.get("reason") == "Unschedulable":
                self._unschedulable.add(entry.uid)
                self._write("pod_unschedulable", change, message=scheduled.get("message", ""))
        if pod["metadata"].get("deletionTimestamp") and not before["metadata"].get("deletionTimestamp"):
            self._write("pod_deleting", change, node=node or "", reason=_disruption(pod))

    def node(self, change: Change) -> None:
        if change.type == DELETED:
            return
        node = change.entry.obj
        before: Object = change.previous.obj if change.previous is not None else {"spec": {}, "status": {}}
        cordoned, was_cordoned = bool(node["spec"].get("unschedulable")), bool(before["spec"].get("unschedulable"))
        if cordoned != was_cordoned:
            self._write_node("node_cordoned" if cordoned else "node_uncordoned", change)
        ready, was_ready = _is_ready(node), _is_ready(before)
        if ready != was_ready:
            self._write_node("node_ready" if ready else "node_not_ready", change)

    def _created(self, change: Change) -> None:
        pod = change.entry.obj
        metadata, spec = pod["metadata"], pod["spec"]
        labels = metadata.get("labels") or {}
        self._write(
            "pod_created",
            change,
            labels=labels,
            annotations=metadata.get("annotations") or {},
            requests=pod_requests(spec),
            priority=spec.get("priority") or 0,
            placeholder=PLACEHOLDER_LABEL in labels,
        )

    def _write(self, kind: str, change: Change, **more: Any) -> None:
        namespace, name = change.entry.key
        self._log.write(kind, pod=name, namespace=namespace, uid=change.entry.uid, **more)

    def _write_node(self, kind: str, change: Change) -> None:
        machine = self._plane.pools.fleet.get(change.entry.key[1])
        if machine is not None:
            self._log.write(kind, **self._plane.pools.fleet.facts(machine))


def _is_ready(node: Object) -> bool:
    ready = find_condition(node, "Ready")
    return ready is not None and ready["status"] == "True"


def _disruption(pod: Object) -> str:
    target = find_condition(pod, "DisruptionTarget")
    return str(target.get("reason", "")) if target is not None and target["status"] == "True" else ""


def _end_reason(pod: Object) -> str:
    """Return why a pod ended: the disruption, the status reason, or the first container that did not complete."""
    reason = _disruption(pod) or pod["status"].get("reason") or ""
    if reason:
        return str(reason)
    for container in pod["status"].get("containerStatuses") or ():
        terminated = container["state"].get("terminated")
        if terminated and terminated["exitCode"] != 0:
            return str(terminated["reason"])
    return "Completed" if pod["status"]["phase"] == "Succeeded" else ""
