"""What the scheduler keeps of pods and nodes between two looks."""

from __future__ import annotations

import json
from typing import Any

from airflow_elastic.embedded.registry.requests import Amounts, amounts_of, pod_requests
from airflow_elastic.embedded.store.entry import Entry
from airflow_elastic.embedded.types import Key, Object

__all__ = ["Constraints", "NodeInfo", "PodInfo"]


class Constraints:
    """Where a pod may go: node selection, affinity and tolerations, shared by all pods that say the same."""

    __slots__ = ("affinity", "node_selector", "number", "pod_affinity", "tolerations")

    _known: dict[str, Constraints] = {}  # noqa: RUF012 - interned for the life of the process, a few per DAG

    def __init__(self, number: int, spec: Object) -> None:
        self.number = number
        self.node_selector: dict[str, str] = spec.get("nodeSelector") or {}
        affinity = spec.get("affinity") or {}
        self.affinity: Object = affinity.get("nodeAffinity") or {}
        self.tolerations: list[Object] = spec.get("tolerations") or []
        self.pod_affinity: Object = {
            key: affinity[key] for key in ("podAffinity", "podAntiAffinity") if affinity.get(key)
        }

    @classmethod
    def of(cls, spec: Object) -> Constraints:
        """Return the constraints of a pod spec."""
        parts: list[Any] = [spec.get("nodeSelector"), spec.get("affinity"), spec.get("tolerations")]
        text = json.dumps(parts, sort_keys=True)
        known = cls._known.get(text)
        if known is None:
            if len(cls._known) > 20_000:
                cls._known.clear()
            known = cls._known[text] = cls(_next_number(), spec)
        return known


_numbers = iter(range(1, 2**62))


def _next_number() -> int:
    return next(_numbers)


class PodInfo:
    """One pod as the scheduler sees it; ``entry`` follows the stored versions."""

    __slots__ = (
        "bucket", "constraints", "created", "entry", "key", "message", "node", "nominated", "preempts", "priority",
        "requests", "terminating", "uid", "unschedulable_since",
    )  # fmt: skip

    def __init__(self, entry: Entry) -> None:
        spec = entry.obj["spec"]
        self.entry = entry
        self.key: Key = entry.key
        self.uid: str = entry.uid
        self.created = entry.version
        self.requests: Amounts = pod_requests(spec)
        self.priority: int = spec.get("priority") or 0
        self.preempts: bool = spec.get("preemptionPolicy") != "Never"
        self.constraints = Constraints.of(spec)
        self.node: str = ""
        self.nominated: str = ""
        self.bucket: object = None
        self.message: str = ""
        self.terminating = False
        self.unschedulable_since: float = 0.0
        """Unix seconds since the pod is known to fit nowhere; 0 while it has not been tried."""

    @property
    def shape(self) -> tuple[Any, ...]:
        """Return what makes two waiting pods alike to the scheduler."""
        return (self.priority, self.constraints.number, self.preempts, *sorted(self.requests.items()))


class NodeInfo:
    """One node with what its pods have taken."""

    __slots__ = ("allocatable", "entry", "free", "labels", "name", "pods", "taints", "unschedulable", "verdicts")

    def __init__(self, entry: Entry) -> None:
        self.name = entry.key[1]
        self.entry = entry
        self.labels: dict[str, str] = {}
        self.taints: list[Object] = []
        self.unschedulable = False
        self.allocatable: Amounts = {}
        self.free: Amounts = {}
        """Allocatable less the requests of the pods; may be negative where a pod was put by hand."""
        self.pods: dict[str, PodInfo] = {}
        self.verdicts: dict[int, Any] = {}
        """What the static filters say, by constraint number; forgotten when the node changes."""
        self.update(entry)

    def update(self, entry: Entry) -> bool:
        """Take over a new version of the Node; tells whether anything that matters to placement has changed."""
        node = entry.obj
        labels = node["metadata"].get("labels") or {}
        taints = node["spec"].get("taints") or []
        unschedulable = bool(node["spec"].get("unschedulable"))
        allocatable = amounts_of(node["status"].get("allocatable"))
        same = (labels, taints, unschedulable, allocatable) == (
            self.labels, self.taints, self.unschedulable, self.allocatable,
        )  # fmt: skip
        self.entry = entry
        if same:
            return False
        self.labels = labels
        self.taints = taints
        self.unschedulable = unschedulable
        if allocatable != self.allocatable:
            self.allocatable = allocatable
            self.free = dict(allocatable)
            for pod in self.pods.values():
                self._take(pod)
        self.verdicts.clear()
        return True

    def add(self, pod: PodInfo) -> None:
        """Count a pod's requests."""
        if pod.uid not in self.pods:
            self.pods[pod.uid] = pod
            self._take(pod)

    def drop(self, pod: PodInfo) -> None:
        """Give a pod's requests back."""
        if self.pods.pop(pod.uid, None) is not None:
            for name, amount in pod.requests.items():
                self.free[name] += amount

    def fits(self, requests: Amounts) -> bool:
        """Tell whether enough is free."""
        free = self.free
        for name, amount in requests.items():  # noqa: SIM110 - a generator costs three times as much, 100 nodes a pod
            if amount > free.get(name, 0):
                return False
        return True

    def lacking(self, requests: Amounts, promised: Amounts) -> list[str]:
        """Return the resources of which too little is free; what is promised to others counts as taken."""
        free = self.free
        return [name for name, amount in requests.items() if amount > free.get(name, 0) - promised.get(name, 0)]

    def _take(self, pod: PodInfo) -> None:
        for name, amount in pod.requests.items():
            self.free[name] = self.free.get(name, 0) - amount
