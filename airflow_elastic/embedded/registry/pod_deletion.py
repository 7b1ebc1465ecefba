"""How pods go: at once, with grace, by eviction, by a controller that says why."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from airflow_elastic.embedded import timestamps
from airflow_elastic.embedded.http.status import ApiError
from airflow_elastic.embedded.registry import budgets
from airflow_elastic.embedded.registry.conditions import condition, pod_with_condition
from airflow_elastic.embedded.store.entry import Entry
from airflow_elastic.embedded.types import Object

if TYPE_CHECKING:
    from airflow_elastic.embedded.plane import ControlPlane
    from airflow_elastic.embedded.registry.writer import DeleteOptions

__all__ = ["TERMINAL_PHASES", "PodDeletion"]

TERMINAL_PHASES = frozenset({"Succeeded", "Failed"})


class PodDeletion:
    """Marks pods for deletion and removes them."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._pods = plane.store("pods")

    def delete(self, entry: Entry, grace_seconds: int | None = None) -> tuple[Entry, bool]:
        """Delete a pod; returns its last version and whether it is gone.

        Pods that hold no machine (never bound, or finished) and deletions without grace are over at once; for the
        others the kubelet ends the containers and then removes the object.
        """
        pod = entry.obj
        metadata, spec = pod["metadata"], pod["spec"]
        grace = spec["terminationGracePeriodSeconds"] if grace_seconds is None else grace_seconds
        if not spec.get("nodeName") or pod["status"]["phase"] in TERMINAL_PHASES:
            grace = 0
        if grace == 0 and not metadata.get("finalizers"):
            return self._pods.remove(entry.key), True
        if metadata.get("deletionTimestamp") and metadata["deletionGracePeriodSeconds"] <= grace:
            return entry, False
        marked = {
            **metadata,
            "deletionTimestamp": timestamps.rfc3339(time.time() + grace),
            "deletionGracePeriodSeconds": grace,
        }
        return self._pods.put(entry.key, {**pod, "metadata": marked}), False

    def finish(self, entry: Entry) -> None:
        """Remove a pod whose containers have ended, unless finalizers hold its object."""
        if entry.obj["metadata"].get("finalizers"):
            if not entry.obj["metadata"].get("deletionTimestamp"):
                self.delete(entry, 0)
            return
        self._pods.remove(entry.key)

    def disrupt(self, entry: Entry, reason: str, message: str, grace_seconds: int | None = None) -> None:
        """Delete a pod for an infrastructure reason, which the condition DisruptionTarget tells."""
        stored = self._pods.put(entry.key, self.disrupted(entry.obj, reason, message))
        self.delete(stored, grace_seconds)

    def collect(self, entry: Entry) -> None:
        """Remove a pod whose node is gone (pod garbage collection): failed first, so that watchers learn why."""
        pod = entry.obj
        if pod["status"]["phase"] not in TERMINAL_PHASES:
            pod = self.disrupted(pod, "DeletionByPodGC", "PodGC: node no longer exists")
            pod["status"] = {**pod["status"], "phase": "Failed"}
            entry = self._pods.put(entry.key, pod)
        self.finish(entry)

    def evict(self, entry: Entry, options: DeleteOptions) -> None:
        """Evict a pod by the API unless a disruption budget forbids it.

        Raises:
            ApiError: 429 where a budget has no disruption left.
        """
        pod = entry.obj
        if not pod["spec"].get("nodeName") or pod["status"]["phase"] in TERMINAL_PHASES:
            if not options.dry_run:
                self.delete(entry, options.grace_seconds)
            return
        matching = budgets.matching(self._plane, pod)
        if len(matching) > 1:
            message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            raise ApiError(500, "", message)
        for budget in matching:
            budgets.take_disruption(self._plane, budget, pod, dry_run=options.dry_run)
        if not options.dry_run:
            self.disrupt(entry, "EvictionByEvictionAPI", "Eviction API: evicting", options.grace_seconds)

    @staticmethod
    def disrupted(pod: Object, reason: str, message: str) -> Object:
        """Return the pod with the condition DisruptionTarget."""
        return pod_with_condition(pod, condition("DisruptionTarget", "True", reason, message))
