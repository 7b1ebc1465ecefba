"""The view of the cluster: what the two watches have seen, as the model's nodes and pods.

Objects are mapped when they change, not when they are read: 10,000 pods cost a tick nothing while they are quiet.
Thread-safe: watchers write, the controller reads.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from airflow_elastic.kubernetes.client import ClusterApi
from airflow_elastic.kubernetes.nodes import NodeFacts, map_node
from airflow_elastic.kubernetes.pods import NodeTerms, PodFacts, admitted_pools, class_by_rules, map_pod
from airflow_elastic.kubernetes.watch import Watcher
from airflow_elastic.model.resources import NO_RESOURCES, Resources
from airflow_elastic.model.settings import Settings
from airflow_elastic.model.snapshot import Node, Pod

__all__ = ["NODES", "PODS", "ClusterView", "FinishedPod", "NodeArrival"]

NODES = "nodes"
PODS = "pods"
_PATHS = {NODES: "/api/v1/nodes", PODS: "/api/v1/pods"}
_MOST_NOTES = 20_000
_SHORTEST_BOOT_LIMIT_SECONDS = 900.0
_BOOT_LIMIT_FACTOR = 4.0


@dataclass(frozen=True, slots=True)
class FinishedPod:
    """A task's pod that succeeded: what it ran, for the profiles."""

    uid: str
    pod: Pod
    started_at: float
    ended_at: float


@dataclass(frozen=True, slots=True)
class NodeArrival:
    """A node that was seen to become usable for the first time."""

    name: str
    node_pool: str
    created_at: float
    usable_at: float


class ClusterView:
    """Nodes of the declared pools and pods of ours, current with the watches."""

    def __init__(
        self,
        monotonic: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._monotonic = monotonic
        self._wall_clock = wall_clock
        self._wake = threading.Condition()
        self._settings: Settings | None = None
        self._raw_nodes: dict[str, dict[str, Any]] = {}
        self._node_facts: dict[str, NodeFacts] = {}
        self._nodes: dict[str, Node] = {}
        self._dirty_nodes: set[str] = set()
        self._seen_usable: dict[str, float] = {}
        self._seen_unusable: set[str] = set()
        self._pod_facts: dict[str, PodFacts] = {}
        self._pods_on: dict[str, set[str]] = defaultdict(set)
        self._pods: dict[str, Pod] = {}
        self._pool_cache: dict[NodeTerms, tuple[str, ...]] = {}
        self._node_tuple: tuple[Node, ...] | None = None
        self._pod_tuple: tuple[Pod, ...] | None = None
        self._finished: deque[FinishedPod] = deque(maxlen=_MOST_NOTES)
        self._arrived: deque[NodeArrival] = deque(maxlen=_MOST_NOTES)
        self._alive_at: dict[str, float] = {}
        self._changed = ""
        self._watchers: list[Watcher] = []

    # lifecycle

    def start(self, api: ClusterApi, watch_seconds: float = 20.0) -> None:
        """Start the watches of nodes and pods (all namespaces: foreign pods take room too)."""
        self._watchers = [Watcher(api, path, kind, self, watch_seconds) for kind, path in _PATHS.items()]
        for watcher in self._watchers:
            watcher.start()

    def stop(self) -> None:
        """End the watches."""
        for watcher in self._watchers:
            watcher.stop()
        self._watchers = []

    def refresh(self) -> None:
        """Ask both watches for a complete list (after a long pause of this process)."""
        with self._wake:
            self._alive_at.clear()
        for watcher in self._watchers:
            watcher.refresh()

    # what a controller reads

    def age_seconds(self, now: float | None = None) -> float:
        """Return the seconds since both watches were last proved current; infinite before the first lists.

        ``now`` is on the monotonic clock, by default the present.
        """
        moment = self._monotonic() if now is None else now
        with self._wake:
            return max((moment - self._alive_at[kind] if kind in self._alive_at else float("inf")) for kind in _PATHS)

    @property
    def problem(self) -> str:
        """Return why the view does not move, or an empty string."""
        return "; ".join(watcher.last_error for watcher in self._watchers if watcher.last_error)

    def wait(self, timeout_seconds: float) -> str:
        """Wait for a change; return ``nodes`` when a node changed, else ``pods``, else an empty string (time is up)."""
        with self._wake:
            if not self._changed:
                self._wake.wait(timeout_seconds)
            changed, self._changed = self._changed, ""
            return changed

    def wake(self) -> None:
        """End a ``wait`` at once (the controller is to stop)."""
        with self._wake:
            self._wake.notify_all()

    def nodes(self, settings: Settings) -> tuple[Node, ...]:
        """Return the nodes of the declared pools, by name."""
        with self._wake:
            self._use(settings)
            self._expire_boots(settings)
            if self._dirty_nodes or self._node_tuple is None:
                for name in self._dirty_nodes:
                    self._rebuild_node(name)
                self._dirty_nodes.clear()
                self._node_tuple = tuple(self._nodes[name] for name in sorted(self._nodes))
            return self._node_tuple

    def pods(self, settings: Settings) -> tuple[Pod, ...]:
        """Return the pods of tasks and our placeholders, in any phase until they are deleted."""
        with self._wake:
            self._use(settings)
            if self._pod_tuple is None:
                self._pod_tuple = tuple(self._pods[key] for key in sorted(self._pods))
            return self._pod_tuple

    def raw_nodes(self) -> list[dict[str, Any]]:
        """Return every node object of the cluster as the API has it: what discovery reads."""
        with self._wake:
            return list(self._raw_nodes.values())

    def take_finished(self) -> list[FinishedPod]:
        """Return, once each, the task pods that were seen to have succeeded."""
        with self._wake:
            finished, self._finished = list(self._finished), deque(maxlen=_MOST_NOTES)
            return finished

    def take_arrivals(self) -> list[NodeArrival]:
        """Return, once each, the nodes that were seen to become usable for the first time."""
        with self._wake:
            arrived, self._arrived = list(self._arrived), deque(maxlen=_MOST_NOTES)
            return arrived

    # what the watchers write (Sink)

    def replace(self, kind: str, objects: list[dict[str, Any]]) -> None:
        """Take a complete list."""
        # Mapping thousands of pods takes its time: nobody waits for it at the lock.
        pods = {_key(obj): map_pod(obj) for obj in objects} if kind == PODS else {}
        with self._wake:
            known = self._raw_nodes if kind == NODES else self._pod_facts
            listed = pods.keys() or {_key(obj) for obj in objects}
            for key in [key for key in known if key not in listed]:
                self._remove(kind, key)
            for key, facts in pods.items():
                self._put_pod(key, facts)
            for obj in objects if kind == NODES else ():
                self._put_node(obj)
            self._note(kind)

    def apply(self, kind: str, event: str, obj: dict[str, Any]) -> None:
        """Take one change."""
        with self._wake:
            if event == "DELETED":
                changed = self._remove(kind, _key(obj))
            else:
                changed = self._put_node(obj) if kind == NODES else self._put_pod(_key(obj), map_pod(obj))
            if changed:
                self._note(kind)

    def proof_of_life(self, kind: str) -> None:
        """Note that the view of this resource is current now."""
        with self._wake:
            first = kind not in self._alive_at
            self._alive_at[kind] = self._monotonic()
            if first:
                self._note(kind)

    # inside, under the lock

    def _note(self, kind: str) -> None:
        self._changed = NODES if NODES in (kind, self._changed) else PODS
        self._wake.notify_all()

    def _remove(self, kind: str, key: str) -> bool:
        if kind == NODES:
            raw = self._raw_nodes.pop(key, None)
            uid = _uid(raw or {})
            self._seen_usable.pop(uid, None)
            self._seen_unusable.discard(uid)
            self._dirty_nodes.add(key)
            return self._node_facts.pop(key, None) is not None
        facts = self._pod_facts.pop(key, None)
        if facts is None:
            return False
        self._unplace(key, facts)
        if self._pods.pop(key, None) is not None:
            self._pod_tuple = None
        return True

    def _put_node(self, obj: dict[str, Any]) -> bool:
        key = _key(obj)
        (obj.get("metadata") or {}).pop("managedFields", None)
        old = self._raw_nodes.get(key)
        if old is not None and _uid(old) != _uid(obj):
            self._remove(NODES, key)
        self._raw_nodes[key] = obj
        if self._settings is None:
            return True
        facts = map_node(obj, self._settings)
        if facts == self._node_facts.get(key):
            return False  # a heartbeat
        if facts is None:
            self._node_facts.pop(key, None)
        else:
            self._node_facts[key] = facts
        self._dirty_nodes.add(key)
        return True

    def _put_pod(self, key: str, facts: PodFacts) -> bool:
        old = self._pod_facts.get(key)
        if facts == old:
            return False
        if old is not None:
            self._unplace(key, old)
        self._pod_facts[key] = facts
        if facts.pod.node and not facts.pod.phase.is_finished:
            self._pods_on[facts.pod.node].add(key)
            self._dirty_nodes.add(facts.pod.node)
        if self._settings is not None:
            self._resolve(key, facts, self._settings)
        if facts.ran is not None and (old is None or old.ran is None or old.uid != facts.uid):
            pod = self._pods.get(key, facts.pod)
            self._finished.append(FinishedPod(facts.uid, pod, *facts.ran))
        return True

    def _unplace(self, key: str, facts: PodFacts) -> None:
        if facts.pod.node:
            self._pods_on[facts.pod.node].discard(key)
            if not self._pods_on[facts.pod.node]:
                del self._pods_on[facts.pod.node]
            self._dirty_nodes.add(facts.pod.node)

    def _use(self, settings: Settings) -> None:
        if settings is self._settings:
            return
        self._settings = settings
        self._pool_cache.clear()
        self._pods.clear()
        self._pod_tuple = None
        for key, pod in self._pod_facts.items():
            self._resolve(key, pod, settings)
        self._nodes.clear()
        mapped = {name: map_node(raw, settings) for name, raw in self._raw_nodes.items()}
        self._node_facts = {name: facts for name, facts in mapped.items() if facts is not None}
        self._dirty_nodes = set(self._node_facts)
        self._node_tuple = None

    def _resolve(self, key: str, facts: PodFacts, settings: Settings) -> None:
        """Decide whether a pod is ours under these settings, and keep the model's pod if so."""
        capacity_class = facts.pod.capacity_class
        is_ours = facts.is_ours
        if not is_ours and facts.kpo_labels is not None:
            capacity_class = class_by_rules(*facts.kpo_labels, settings)
            is_ours = bool(capacity_class)
        self._pod_tuple = None
        if not is_ours:
            self._pods.pop(key, None)
            return
        if facts.terms not in self._pool_cache:
            self._pool_cache[facts.terms] = admitted_pools(facts.terms, settings)
        self._pods[key] = replace(facts.pod, capacity_class=capacity_class, node_pools=self._pool_cache[facts.terms])

    def _rebuild_node(self, name: str) -> None:
        facts = self._node_facts.get(name)
        if facts is None or self._settings is None:
            self._nodes.pop(name, None)
            return
        foreign, blocker = self._foreign_on(name)
        uid = _uid(self._raw_nodes[name])
        usable = not facts.unusable_because
        old = self._nodes.get(name)
        usable_since = self._usable_since(facts, uid, usable, old)
        self._nodes[name] = Node(
            name=name,
            node_pool=facts.node_pool,
            allocatable=facts.allocatable,
            usable=usable,
            unusable_because=facts.unusable_because,
            created_at=facts.created_at,
            usable_since=usable_since,
            foreign=foreign,
            is_booting=facts.is_starting and uid not in self._seen_usable,
            is_releasing=facts.is_releasing,
            is_lost=facts.is_lost,
            blocks_release=facts.blocks_release or blocker,
        )

    def _usable_since(self, facts: NodeFacts, uid: str, usable: bool, old: Node | None) -> float | None:
        if not usable:
            self._seen_unusable.add(uid)
            return None
        if uid not in self._seen_usable:
            now = self._wall_clock()
            was_watched = uid in self._seen_unusable
            self._seen_usable[uid] = now
            if was_watched:
                self._arrived.append(NodeArrival(facts.name, facts.node_pool, facts.created_at, now))
                return now
            return facts.ready_since if facts.ready_since is not None else now
        if old is not None and old.usable_since is not None:
            return old.usable_since
        return facts.ready_since if facts.ready_since is not None else self._wall_clock()

    def _foreign_on(self, node: str) -> tuple[Resources, str]:
        total: dict[str, int] = {}
        blocker = ""
        for key in self._pods_on.get(node, ()):
            facts = self._pod_facts[key]
            if key in self._pods:
                if self._must_stay(self._pods[key]):
                    blocker = blocker or f"pod {key} of class {self._pods[key].capacity_class} may not be evicted"
                continue
            for name, amount in facts.pod.requests.amounts:
                total[name] = total.get(name, 0) + amount
            if not facts.is_daemon:
                blocker = blocker or f"pod {key}, which is not ours, runs there"
        return (Resources.of(total) if total else NO_RESOURCES), blocker

    def _must_stay(self, pod: Pod) -> bool:
        if pod.placeholder_of or self._settings is None:
            return False
        capacity_class = self._settings.capacity_class(pod.capacity_class)
        return capacity_class is None or not capacity_class.evictable

    def _expire_boots(self, settings: Settings) -> None:
        """A node that never gets Ready stops counting as on its way, so that another one can be asked for."""
        now = self._wall_clock()
        for name, node in self._nodes.items():
            if not node.is_booting:
                continue
            pool = settings.node_pool(node.node_pool)
            prior = pool.boot_seconds_p95 if pool else 0.0
            limit = max(_SHORTEST_BOOT_LIMIT_SECONDS, _BOOT_LIMIT_FACTOR * prior)
            if now - node.created_at > limit:
                why = f"{node.unusable_because}, {now - node.created_at:.0f} s after it was made"
                self._nodes[name] = replace(node, is_booting=False, unusable_because=why)
                self._node_tuple = None


def _key(obj: dict[str, Any]) -> str:
    metadata = obj.get("metadata") or {}
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata.get('name', '')}" if namespace else str(metadata.get("name", ""))


def _uid(obj: dict[str, Any]) -> str:
    metadata = obj.get("metadata") or {}
    return str(metadata.get("uid") or metadata.get("name", ""))
