"""The scheduling loop: takes waiting pods in order, binds those that fit, explains the others."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from airflow_elastic.embedded.registry import budgets
from airflow_elastic.embedded.registry.conditions import condition, find_condition, with_condition
from airflow_elastic.embedded.registry.pod_deletion import TERMINAL_PHASES
from airflow_elastic.embedded.registry.requests import Amounts
from airflow_elastic.embedded.scheduler import messages, pod_affinity
from airflow_elastic.embedded.scheduler.filters import AFFINITY_MISMATCH, Verdict, judge
from airflow_elastic.embedded.scheduler.infos import NodeInfo, PodInfo
from airflow_elastic.embedded.scheduler.preemption import find_victims
from airflow_elastic.embedded.scheduler.queue import Bucket, Queue
from airflow_elastic.embedded.scheduler.scoring import choose
from airflow_elastic.embedded.store.entry import DELETED, Change, Entry
from airflow_elastic.embedded.types import Object

if TYPE_CHECKING:
    from airflow_elastic.embedded.plane import ControlPlane

__all__ = ["Scheduler"]

NAME = "default-scheduler"
# Pods looked at before the API gets its turn again.
_BATCH = 50
# Enough good nodes to choose from; more are looked at only while fewer are found.
_ENOUGH_FEASIBLE = 100


class Scheduler:
    """Follows pods and nodes through the store's changes; works in slices between API requests."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._pods = plane.store("pods")
        self._nodes: dict[str, NodeInfo] = {}
        self._infos: dict[str, PodInfo] = {}
        self._on_node: dict[str, dict[str, PodInfo]] = {}
        self._queue = Queue()
        self._nominated: dict[str, dict[str, PodInfo]] = {}
        self._with_anti: dict[str, PodInfo] = {}
        self._planned = False
        self._capacity_changed = False
        self._packing = plane.config.scoring == "most-allocated"
        self._first = 0
        self._stale_messages: dict[int, Bucket] = {}
        plane.store("nodes").listen(self._on_node_change)
        self._pods.listen(self._on_pod_change)

    # What others ask

    def pods_on(self, node: str) -> list[Entry]:
        """Return the pods bound to a node, finished ones that still have an object included."""
        found = (self._pods.get(info.key) for info in list(self._on_node.get(node, {}).values()))
        return [entry for entry in found if entry is not None]

    def is_empty(self, node: str) -> bool:
        """Tell whether nothing but finished and daemon pods is on a node."""
        info = self._nodes.get(node)
        return info is None or all(_is_daemon(pod.entry.obj) for pod in info.pods.values())

    def node_infos(self) -> dict[str, NodeInfo]:
        """Return the nodes with what is taken on them (not to be changed)."""
        return self._nodes

    def unschedulable(self) -> list[PodInfo]:
        """Return the pods that were tried and fit nowhere, the most important and oldest first."""
        waiting = [pod for bucket in self._queue.buckets() for pod in bucket.pods.values() if pod.unschedulable_since]
        return sorted(waiting, key=lambda pod: (-pod.priority, pod.created))

    def bind(self, entry: Entry, node: str) -> None:
        """Bind a pod to a node, as the scheduler itself or another through the binding subresource does."""
        pod = entry.obj
        scheduled = condition("PodScheduled", "True")
        status = {**pod["status"], "conditions": with_condition(pod["status"].get("conditions") or (), scheduled)}
        status.pop("nominatedNodeName", None)
        spec = {**pod["spec"], "nodeName": node}
        bound = {**pod, "metadata": dict(pod["metadata"]), "spec": spec, "status": status}
        stored = self._pods.put(entry.key, bound)
        message = f"Successfully assigned {entry.key[0]}/{entry.key[1]} to {node}"
        self._plane.recorder.emit(stored.obj, "Scheduled", message, NAME)

    def admission_refusal(self, uid: str) -> tuple[str, str] | None:
        """Return why the kubelet of a pod's node has to reject it, as (reason, message); None if it takes it.

        Only pods that somebody else bound can be refused: the scheduler binds none that does not fit.
        """
        pod = self._infos.get(uid)
        node = self._nodes.get(pod.node) if pod is not None else None
        if pod is None or node is None:
            return None
        if judge(pod.constraints, node).reason == AFFINITY_MISMATCH:
            return "NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
        for name, amount in pod.requests.items():
            free = node.free.get(name, 0)
            if free < 0:
                capacity = node.allocatable.get(name, 0)
                detail = f"{name}, requested: {amount}, used: {capacity - free - amount}, capacity: {capacity}"
                return f"OutOf{name}", f"Node didn't have enough resource: {detail}"
        return None

    # What the store tells

    def _on_node_change(self, change: Change) -> None:
        name = change.entry.key[1]
        if change.type == DELETED:
            self._nodes.pop(name, None)
            for pod in list(self._nominated.pop(name, {}).values()):
                self._denominate(pod)
        else:
            info = self._nodes.get(name)
            if info is None:
                info = self._nodes[name] = NodeInfo(change.entry)
                for pod in self._on_node.get(name, {}).values():
                    if pod.entry.obj["status"]["phase"] not in TERMINAL_PHASES:
                        info.add(pod)
            elif not info.update(change.entry):
                return
        self._wake(capacity_changed=True)

    def _on_pod_change(self, change: Change) -> None:
        entry = change.entry
        uid = entry.uid
        if change.type == DELETED:
            info = self._infos.pop(uid, None)
            if info is not None:
                self._forget(info)
            return
        info = self._infos.get(uid)
        if info is None:
            info = self._infos[uid] = PodInfo(entry)
            self._admit(info)
            return
        before = info.entry.obj
        info.entry = entry
        pod = entry.obj
        if pod["metadata"].get("deletionTimestamp") and not info.terminating:
            info.terminating = True
        if info.node:
            if pod["status"]["phase"] in TERMINAL_PHASES and before["status"]["phase"] not in TERMINAL_PHASES:
                self._release(info)
        elif pod["spec"].get("nodeName"):
            self._placed(info, pod["spec"]["nodeName"])
        elif pod["spec"] is not before["spec"] and pod["spec"] != before["spec"]:
            self._queue.discard(info)
            fresh = self._infos[uid] = PodInfo(entry)
            fresh.unschedulable_since = info.unschedulable_since
            self._admit(fresh)

    def _admit(self, info: PodInfo) -> None:
        spec = info.entry.obj["spec"]
        if spec.get("nodeName"):
            self._placed(info, spec["nodeName"])
        elif spec.get("schedulerName", NAME) == NAME and not spec.get("schedulingGates"):
            bucket = self._queue.add(info)
            if bucket.blocked:
                # Its likes found no node and nothing has changed since: say so now, not after another search.
                self._explain(info, bucket.message)
            else:
                self._wake()

    def _placed(self, info: PodInfo, node: str) -> None:
        self._queue.discard(info)
        self._denominate(info)
        info.node = node
        self._on_node.setdefault(node, {})[info.uid] = info
        known = self._nodes.get(node)
        if known is not None and info.entry.obj["status"]["phase"] not in TERMINAL_PHASES:
            known.add(info)
        if (info.constraints.pod_affinity.get("podAntiAffinity") or {}).get(
            "requiredDuringSchedulingIgnoredDuringExecution"
        ):
            self._with_anti[info.uid] = info

    def _release(self, info: PodInfo) -> None:
        node = self._nodes.get(info.node)
        self._with_anti.pop(info.uid, None)
        if node is not None:
            node.drop(info)
            if len(self._queue):
                self._wake(capacity_changed=True)

    def _forget(self, info: PodInfo) -> None:
        self._queue.discard(info)
        self._denominate(info)
        if info.node:
            placed = self._on_node.get(info.node, {})
            placed.pop(info.uid, None)
            if not placed:
                self._on_node.pop(info.node, None)
            self._release(info)

    # The loop

    def _wake(self, *, capacity_changed: bool = False) -> None:
        self._capacity_changed = self._capacity_changed or capacity_changed
        if not self._planned:
            self._planned = True
            self._plane.loop.call_soon(self._work)

    def _work(self) -> None:
        self._planned = False
        if self._capacity_changed:
            self._capacity_changed = False
            self._queue.unblock_all()
        for _ in range(_BATCH):
            pod = self._queue.next()
            if pod is None:
                self._refresh_messages()
                return
            self._try(pod)
        self._wake()

    def _try(self, pod: PodInfo) -> None:
        feasible, refused = self._filter(pod)
        if feasible:
            bonus = pod_affinity.preferences(pod, self._nodes) if pod_affinity.has_terms(pod) else None
            node = choose(feasible, pod.requests, packing=self._packing, bonus=bonus)
            self.bind(pod.entry, node.name)
            return
        if pod.nominated and not self._victims_remain(pod):
            # The room that was made went to somebody more important: look for other victims.
            self._denominate(pod)
            return
        bucket = pod.bucket
        assert isinstance(bucket, Bucket), "a pod that is tried waits in a bucket"
        note = ""
        if refused and not pod.nominated:
            if self._preempt(pod):
                return
            note = messages.preemption(pod, refused)
        message = messages.unschedulable(len(self._nodes), refused, note)
        if message != bucket.message:
            self._stale_messages[id(bucket)] = bucket
        self._queue.block(bucket, message)
        self._explain(pod, message)

    def _filter(self, pod: PodInfo) -> tuple[list[tuple[NodeInfo, Verdict]], list[tuple[NodeInfo, str]]]:
        """Return the nodes where a pod fits, and the others with the reason."""
        blocked = self._blocked(pod)
        feasible: list[tuple[NodeInfo, Verdict]] = []
        refused: list[tuple[NodeInfo, str]] = []
        nodes = list(self._nodes.values())
        # Start elsewhere each time, so that all nodes are used although not all are looked at.
        first = self._first % len(nodes) if len(nodes) > _ENOUGH_FEASIBLE else 0
        for node in nodes[first:] + nodes[:first] if first else nodes:
            verdict = judge(pod.constraints, node)
            if verdict.reason:
                refused.append((node, verdict.reason))
                continue
            promised = self._promised(node.name, pod) if self._nominated else {}
            if promised or not node.fits(pod.requests):
                lacking = node.lacking(pod.requests, promised)
                if lacking:
                    refused.extend((node, messages.insufficient(name)) for name in lacking)
                    continue
            if node.name in blocked:
                refused.append((node, blocked[node.name]))
            else:
                feasible.append((node, verdict))
                if len(feasible) >= _ENOUGH_FEASIBLE:
                    break
        self._first += len(feasible) + len(refused)
        return feasible, refused

    def _blocked(self, pod: PodInfo) -> dict[str, str]:
        """Return the nodes where other pods forbid this one, with the reason."""
        if self._with_anti or pod_affinity.has_terms(pod):
            return pod_affinity.blocked_nodes(pod, self._nodes, self._with_anti.values())
        return {}

    def _promised(self, node: str, pod: PodInfo) -> Amounts:
        """Return what pods at least as important, nominated for a node, will take there."""
        total: Amounts = {}
        for other in self._nominated.get(node, {}).values():
            if other is not pod and other.priority >= pod.priority:
                for name, amount in other.requests.items():
                    total[name] = total.get(name, 0) + amount
        return total

    def _preempt(self, pod: PodInfo) -> bool:
        """Make room for a pod by ending less important ones; tells whether that has begun."""
        if not pod.preempts:
            return False
        # Ending pods does not help where affinity between pods forbids the node.
        blocked = self._blocked(pod)
        candidates = [
            node for node in self._nodes.values() if node.name not in blocked and not self._promised(node.name, pod)
        ]
        found = find_victims(pod, candidates, lambda other: budgets.allows(self._plane, other.entry.obj))
        if found is None:
            return False
        self._nominate(pod, found.node)
        for victim in found.victims:
            if victim.terminating:
                continue
            entry = self._pods.get(victim.key)
            if entry is None:
                continue
            message = f"{NAME}: preempting to accommodate a higher priority pod"
            about = f"Preempted by pod {pod.uid} on node {found.node.name}"
            self._plane.recorder.emit(entry.obj, "Preempted", about, NAME)
            self._plane.pod_deletion.disrupt(entry, "PreemptionByScheduler", message)
        return True

    def _victims_remain(self, pod: PodInfo) -> bool:
        node = self._nodes.get(pod.nominated)
        return node is not None and any(
            other.terminating and other.priority < pod.priority for other in node.pods.values()
        )

    def _nominate(self, pod: PodInfo, node: NodeInfo) -> None:
        self._queue.discard(pod)
        pod.nominated = node.name
        self._nominated.setdefault(node.name, {})[pod.uid] = pod
        entry = pod.entry.obj
        message = f"preempting on {node.name}: waiting for the victims to end"
        conditions = with_condition(
            entry["status"].get("conditions") or (), condition("PodScheduled", "False", "Unschedulable", message)
        )
        status = {**entry["status"], "conditions": conditions, "nominatedNodeName": node.name}
        pod.unschedulable_since = pod.unschedulable_since or time.time()
        self._pods.put(pod.key, {**entry, "metadata": dict(entry["metadata"]), "status": status})
        bucket = self._queue.add(pod)
        self._queue.block(bucket, message)

    def _denominate(self, pod: PodInfo) -> None:
        if pod.nominated:
            promised = self._nominated.get(pod.nominated, {})
            promised.pop(pod.uid, None)
            if not promised:
                self._nominated.pop(pod.nominated, None)
            waiting = pod.bucket is not None
            self._queue.discard(pod)
            pod.nominated = ""
            if waiting and pod.uid in self._infos:
                self._queue.add(pod)

    # Saying why

    def _explain(self, pod: PodInfo, message: str) -> None:
        """Write the condition and the event of a pod that fits nowhere, unless they say the same already."""
        if pod.message == message:
            return
        pod.message = message
        pod.unschedulable_since = pod.unschedulable_since or time.time()
        obj = pod.entry.obj
        old = find_condition(obj, "PodScheduled")
        if old is None or old.get("message") != message:
            new = condition("PodScheduled", "False", "Unschedulable", message)
            conditions = with_condition(obj["status"].get("conditions") or (), new)
            status = {**obj["status"], "conditions": conditions}
            stored = self._pods.put(pod.key, {**obj, "metadata": dict(obj["metadata"]), "status": status})
            obj = stored.obj
        self._plane.recorder.emit(obj, "FailedScheduling", message, NAME, warning=True, repeats=True)

    def _refresh_messages(self) -> None:
        """Bring the messages of waiting pods up to date, a slice at a time."""
        while self._stale_messages:
            number, bucket = next(iter(self._stale_messages.items()))
            stale = [pod for pod in bucket.pods.values() if pod.message != bucket.message]
            if not stale or not bucket.blocked:
                del self._stale_messages[number]
                continue
            self._explain_some(stale[:_BATCH], bucket.message)
            self._wake()
            return

    def _explain_some(self, pods: Iterable[PodInfo], message: str) -> None:
        for pod in pods:
            self._explain(pod, message)


def _is_daemon(pod: Object) -> bool:
    return any(owner.get("kind") in ("DaemonSet", "Node") for owner in pod["metadata"].get("ownerReferences") or ())
