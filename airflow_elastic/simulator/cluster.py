"""The simulated cluster: node pools whose nodes boot, a kube-scheduler that packs pods, nodes that go or are lost.

Decisions:
- A machine is billed from its launch request until it is removed (or until the request is taken back). It appears as a
  node when it is usable; before that it is only *coming*.
- The boot time of the n-th machine of a pool is the n-th draw of a lognormal distribution with the pool's true median
  and 95th percentile, whatever policy asks for it.
- Pods are placed in the order in which they were created; one that does not fit lets the others pass. A pod goes to
  the first of its class's pools that has room; within it to the fullest node that holds it (``packing``) or to the
  emptiest, which is kube-scheduler's default. It stays there until it ends.
- Machines of a pool with reclaims live for an exponentially distributed time; the pods on a lost one are lost.
- During a stock-out a pool starts no machine: requests wait, are not billed, and begin to boot when it ends.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.resources import Resources
from airflow_elastic.planning.vectors import room_amount
from airflow_elastic.simulator.engine import Engine

__all__ = ["Cluster", "PoolTruth", "SimNode", "SimPod", "SimPool"]

_Z95 = 1.6448536269514722


@dataclass(frozen=True, slots=True)
class PoolTruth:
    """How a node pool really behaves, whatever the capacity file says."""

    boot_seconds: float
    boot_seconds_p95: float
    reclaim_mean_seconds: float = 0.0
    """Mean life of a machine until its cloud takes it back; 0: for ever."""
    stock_outs: tuple[tuple[float, float], ...] = ()
    """(from, to) in which no machine starts."""

    def boot_draw(self, random: Random) -> float:
        """Return one boot time in seconds."""
        sigma = math.log(max(self.boot_seconds_p95 / self.boot_seconds, 1.0)) / _Z95
        return self.boot_seconds * math.exp(sigma * random.gauss(0.0, 1.0))

    def stock_out_until(self, at: float) -> float | None:
        """Return when the stock-out at this moment ends, None when there is none."""
        return next((end for begin, end in self.stock_outs if begin <= at < end), None)


class SimNode:
    """A machine, from its launch request on."""

    __slots__ = (
        "asked_at",
        "avoid",
        "billed_from",
        "free",
        "gone_at",
        "idle_since",
        "name",
        "pods",
        "pool",
        "usable_at",
    )

    def __init__(self, name: str, pool: SimPool, now: float) -> None:
        self.name = name
        self.pool = pool
        self.asked_at = now
        self.billed_from: float | None = None
        self.usable_at: float | None = None
        self.gone_at: float | None = None
        self.free: list[int] = list(pool.room)
        self.pods: set[SimPod] = set()
        self.idle_since: float | None = None
        """Since when it is usable without a pod."""
        self.avoid = False
        """A soft taint (PreferNoSchedule): pods go elsewhere while they can."""


class SimPod:
    """A task's pod."""

    __slots__ = ("amounts", "created_at", "name", "node", "owner", "pools", "requests", "started_at")

    def __init__(self, name: str, owner: object, requests: Resources, amounts: tuple[int, ...],
                 pools: tuple[SimPool, ...], now: float) -> None:  # fmt: skip
        self.name = name
        self.owner = owner
        self.requests = requests
        self.amounts = amounts
        self.pools = pools
        self.created_at = now
        self.node: SimNode | None = None
        self.started_at: float | None = None


class SimPool:
    """A node pool and its machines."""

    def __init__(self, pool: NodePool, truth: PoolTruth, names: Sequence[str], seed: int) -> None:
        self.pool = pool
        self.name = pool.name
        self.truth = truth
        self.room = tuple(room_amount(pool.shape, name) for name in names)
        self.nodes: list[SimNode] = []
        """Usable ones, oldest first."""
        self.coming: list[SimNode] = []
        """Asked for and not usable yet, oldest request first."""
        self.launched = 0
        self.starts = 0
        self.billed_seconds = 0.0
        self.counts: list[tuple[float, int]] = []
        """Machines asked for and not gone, at each change."""
        self._boots = Random(f"{seed} boot {pool.name}")
        self.lives = Random(f"{seed} life {pool.name}")

    @property
    def size(self) -> int:
        """Return the machines that stand or come."""
        return len(self.nodes) + len(self.coming)

    def next_boot(self) -> float:
        """Return the boot time of the next machine."""
        return self.truth.boot_draw(self._boots)


class Cluster:
    """Node pools, pods, and who waits for room."""

    def __init__(
        self,
        engine: Engine,
        pools: Sequence[SimPool],
        names: Sequence[str],
        on_pod_started: Callable[[SimPod], None],
        on_pod_lost: Callable[[SimPod], None],
        *,
        packing: bool = True,
    ) -> None:
        self.engine = engine
        self.pools = {pool.name: pool for pool in pools}
        self.names = tuple(names)
        self.packing = packing
        self.pending: deque[SimPod] = deque()
        self.changed = False
        """Set by every change of nodes or pods; whoever watches clears it."""
        self.arrivals: list[SimNode] = []
        """Machines that became usable, for whoever learns boot times."""
        self.order: Callable[[SimPod], float] | None = None
        """Where set, pods that are made at one moment are placed by this key, the smallest first."""
        self._is_due = False
        self._on_pod_started = on_pod_started
        self._on_pod_lost = on_pod_lost
        self._scores = [i for i, name in enumerate(self.names) if name in ("cpu", "memory")]

    # machines

    def launch(self, pool: SimPool, count: int) -> None:
        """Ask for machines."""
        now = self.engine.now
        for _ in range(count):
            pool.launched += 1
            node = SimNode(f"{pool.name}-{pool.launched}", pool, now)
            pool.coming.append(node)
            self._begin(node, pool.next_boot())
        if count > 0:
            self._count(pool)

    def _begin(self, node: SimNode, boot_seconds: float) -> None:
        if node.gone_at is not None:
            return
        until = node.pool.truth.stock_out_until(self.engine.now)
        if until is not None:
            self.engine.at(until, self._begin, node, boot_seconds)
            return
        node.billed_from = self.engine.now
        node.pool.starts += 1
        self.engine.at(self.engine.now + boot_seconds, self._usable, node)

    def cancel(self, pool: SimPool, count: int) -> int:
        """Take back the latest requests that have not become nodes; return how many."""
        gone = 0
        while gone < count and pool.coming:
            self._end(pool.coming.pop())
            gone += 1
        if gone:
            self._count(pool)
        return gone

    def remove(self, node: SimNode) -> bool:
        """Remove a node without pods; False: a pod runs there, or it is no node any more."""
        if node.pods or node.gone_at is not None or node.usable_at is None:
            return False
        node.pool.nodes.remove(node)
        self._end(node)
        self._count(node.pool)
        return True

    def lose(self, node: SimNode) -> None:
        """Lose a node with everything on it."""
        if node.gone_at is not None or node.usable_at is None:
            return
        node.pool.nodes.remove(node)
        self._end(node)
        self._count(node.pool)
        for pod in sorted(node.pods, key=lambda each: each.name):
            pod.node = None
            self._on_pod_lost(pod)
        node.pods.clear()

    def _usable(self, node: SimNode) -> None:
        if node.gone_at is not None:
            return
        pool = node.pool
        pool.coming.remove(node)
        pool.nodes.append(node)
        node.usable_at = node.idle_since = self.engine.now
        self.arrivals.append(node)
        self.changed = True
        if pool.truth.reclaim_mean_seconds > 0:
            life = pool.lives.expovariate(1.0 / pool.truth.reclaim_mean_seconds)
            self.engine.at(self.engine.now + life, self.lose, node)
        self.schedule()

    def _end(self, node: SimNode) -> None:
        node.gone_at = self.engine.now
        if node.billed_from is not None:
            node.pool.billed_seconds += self.engine.now - node.billed_from
        self.changed = True

    def _count(self, pool: SimPool) -> None:
        now, size = self.engine.now, pool.size
        if pool.counts and pool.counts[-1][0] == now:
            pool.counts[-1] = (now, size)
        else:
            pool.counts.append((now, size))
        self.changed = True

    def bill(self, pool: SimPool) -> float:
        """Return the node-seconds billed until now, standing machines included."""
        standing = (node.billed_from for node in (*pool.nodes, *pool.coming))
        return pool.billed_seconds + sum(self.engine.now - begun for begun in standing if begun is not None)

    # pods

    def create(self, pod: SimPod) -> None:
        """Add a pod; it is placed at once, with those made at the same moment, where there is room."""
        self.pending.append(pod)
        self.changed = True
        if not self._is_due:
            self._is_due = True
            self.engine.at(self.engine.now, self._place_new)

    def _place_new(self) -> None:
        self._is_due = False
        if self.order is not None:
            self.pending = deque(sorted(self.pending, key=self.order))
        self.schedule()

    def end(self, pod: SimPod) -> None:
        """A pod's containers have ended: its room is free."""
        node = pod.node
        self.changed = True
        if node is None:
            if pod in self.pending:
                self.pending.remove(pod)
            return
        node.pods.discard(pod)
        for i, amount in enumerate(pod.amounts):
            node.free[i] += amount
        if not node.pods:
            node.idle_since = self.engine.now
        self.schedule()

    def schedule(self) -> None:
        """Place the pods that wait."""
        if not self.pending:
            return
        waiting: deque[SimPod] = deque()
        hopeless: set[tuple[tuple[int, ...], tuple[SimPool, ...]]] = set()
        while self.pending:
            pod = self.pending.popleft()
            key = (pod.amounts, pod.pools)
            node = None if key in hopeless else self._node_for(pod)
            if node is None:
                hopeless.add(key)
                waiting.append(pod)
                continue
            for i, amount in enumerate(pod.amounts):
                node.free[i] -= amount
            node.pods.add(pod)
            node.idle_since = None
            pod.node = node
            pod.started_at = self.engine.now
            self.changed = True
            self._on_pod_started(pod)
        self.pending = waiting

    def _node_for(self, pod: SimPod) -> SimNode | None:
        amounts = pod.amounts
        for pool in pod.pools:
            best: SimNode | None = None
            best_score = -math.inf
            for node in pool.nodes:
                free = node.free
                if any(map(int.__lt__, free, amounts)):
                    continue
                score = 0.0
                for i in self._scores:
                    score += free[i] / pool.room[i] if pool.room[i] else 0.0
                if self.packing:
                    score = -score
                if node.avoid:
                    score -= 100.0
                if score > best_score:
                    best, best_score = node, score
            if best is not None:
                return best
        return None
