"""The control plane: stores and components of one cluster, wired together. Lives on one event loop."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from airflow_elastic.embedded.autoscaler import Autoscaler
from airflow_elastic.embedded.config import ClusterConfig
from airflow_elastic.embedded.event_log import EventLog
from airflow_elastic.embedded.facts import record_facts
from airflow_elastic.embedded.http.pages import Pages
from airflow_elastic.embedded.kubelet.kubelet import Kubelet
from airflow_elastic.embedded.nodes.heartbeat import NodeLeases
from airflow_elastic.embedded.nodes.lifecycle import TaintManager
from airflow_elastic.embedded.nodes.pools import NodePools
from airflow_elastic.embedded.registry import seeds
from airflow_elastic.embedded.registry.budgets import BudgetStatus
from airflow_elastic.embedded.registry.garbage import GarbageCollector
from airflow_elastic.embedded.registry.pod_deletion import PodDeletion
from airflow_elastic.embedded.registry.quotas import QuotaStatus
from airflow_elastic.embedded.registry.recorder import EventRecorder
from airflow_elastic.embedded.registry.resources import ALL, Resource
from airflow_elastic.embedded.registry.writer import Writer
from airflow_elastic.embedded.scheduler.scheduler import Scheduler
from airflow_elastic.embedded.store.collection import Collection, Versions
from airflow_elastic.embedded.store.entry import Entry
from airflow_elastic.embedded.types import Object

if TYPE_CHECKING:
    from airflow_elastic.embedded.store.watcher import Watcher

__all__ = ["ControlPlane"]


class ControlPlane:
    """Everything behind the HTTP surface.

    The order of construction is the order in which components hear of changes: the event log first, then the
    scheduler (whose books the others read), then the kubelets and node controllers.
    """

    def __init__(self, config: ClusterConfig, event_log: EventLog, *, time_speed: float = 1.0, seed: int = 0) -> None:
        self.config = config
        self.event_log = event_log
        self.time_speed = time_speed
        self.loop = asyncio.get_running_loop()
        self.versions = Versions()
        self._stores: dict[str, Collection] = {
            resource.store_key: Collection(self.versions, config.history) for resource in ALL
        }
        self.address = ""
        self.user_agent = ""
        """Who made the request that is being served; the event log names who scaled."""
        self.open_watches: set[Watcher] = set()
        self.pages = Pages()
        self.writer = Writer(self)
        self.recorder = EventRecorder(self, config.max_events)
        self.pod_deletion = PodDeletion(self)
        record_facts(self)
        self.scheduler = Scheduler(self)
        self.kubelet = Kubelet(self)
        self.taints = TaintManager(self)
        self.budgets = BudgetStatus(self)
        self.quotas = QuotaStatus(self)
        self.pools = NodePools(self, random.Random(seed))
        self.leases = NodeLeases(self)
        self.autoscaler = Autoscaler(self)
        self.garbage = GarbageCollector(self)

    def start(self) -> None:
        """Make the objects every cluster has, the node pools and their first nodes."""
        seeds.plant(self)
        self.pools.start()
        self.leases.start()
        self.autoscaler.start()

    def stop(self) -> None:
        """End watches and pods' processes."""
        for watcher in list(self.open_watches):
            watcher.close()
        self.kubelet.stop()

    def store(self, key: str) -> Collection:
        """Return the objects of one resource: ``plural`` or ``plural.group``."""
        return self._stores[key]

    def default_priority_class(self) -> Object | None:
        """Return the PriorityClass that pods without one get."""
        for entry in self._stores["priorityclasses.scheduling.k8s.io"].values():
            if entry.obj.get("globalDefault"):
                return entry.obj
        return None

    def finalized(self, resource: Resource, entry: Entry) -> Entry:
        """Remove an object that was marked for deletion and has lost its last finalizer."""
        if resource.store_key == "pods":
            pod = entry.obj
            running = pod["spec"].get("nodeName") and pod["status"]["phase"] not in ("Succeeded", "Failed")
            if running and pod["metadata"].get("deletionGracePeriodSeconds"):
                return entry
        return self.store(resource.store_key).remove(entry.key)

    def delete_namespace(self, entry: Entry) -> tuple[Entry, bool]:
        """Delete a namespace with everything in it."""
        name = entry.key[1]
        for resource in ALL:
            if resource.namespaced and not resource.stored_as:
                collection = self.store(resource.store_key)
                for inside in collection.entries(name):
                    collection.remove(inside.key)
        status = {**entry.obj["status"], "phase": "Terminating"}
        namespaces = self.store("namespaces")
        metadata = {**entry.obj["metadata"], "deletionTimestamp": entry.obj["metadata"]["creationTimestamp"]}
        namespaces.put(entry.key, {**entry.obj, "metadata": metadata, "status": status})
        return namespaces.remove(entry.key), False
