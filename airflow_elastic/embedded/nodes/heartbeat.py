"""Node leases: what kubelets renew to say that they live."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_elastic.embedded import timestamps
from airflow_elastic.embedded.nodes.machine import MachineState
from airflow_elastic.embedded.registry.writer import new_uid
from airflow_elastic.embedded.store.entry import DELETED, Change

if TYPE_CHECKING:
    from airflow_elastic.embedded.plane import ControlPlane

__all__ = ["NodeLeases"]

_NAMESPACE = "kube-node-lease"
_RENEW_SECONDS = 10.0
_DURATION_SECONDS = 40


class NodeLeases:
    """Keeps one lease for each ready node, renewed by a single timer."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._leases = plane.store("leases.coordination.k8s.io")
        plane.store("nodes").listen(self._on_node_change)

    def start(self) -> None:
        """Begin to renew."""
        self._plane.loop.call_later(_RENEW_SECONDS, self._renew_all)

    def _on_node_change(self, change: Change) -> None:
        name = change.entry.key[1]
        key = (_NAMESPACE, name)
        if change.type == DELETED:
            if key in self._leases:
                self._leases.remove(key)
        elif key not in self._leases:
            metadata = {
                "name": name,
                "namespace": _NAMESPACE,
                "uid": new_uid(),
                "creationTimestamp": timestamps.now(),
                "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": change.entry.uid}],
            }
            spec = {
                "holderIdentity": name,
                "leaseDurationSeconds": _DURATION_SECONDS,
                "renewTime": timestamps.now_micro(),
            }
            kind = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1"}
            self._leases.put(key, {**kind, "metadata": metadata, "spec": spec})

    def _renew_all(self) -> None:
        stamp = timestamps.now_micro()
        for name in self._plane.pools.configs:
            for machine in self._plane.pools.fleet.of_pool(name):
                entry = self._leases.get((_NAMESPACE, machine.name))
                if entry is not None and machine.state is not MachineState.LOST:
                    spec = {**entry.obj["spec"], "renewTime": stamp}
                    self._leases.put(entry.key, {**entry.obj, "metadata": dict(entry.obj["metadata"]), "spec": spec})
        self._plane.loop.call_later(_RENEW_SECONDS, self._renew_all)
