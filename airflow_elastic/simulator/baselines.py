"""Reactive policies that the product is compared with.

All let Airflow start tasks at once (pools without limit), so that their pods wait as Pending; all bring the nodes that
the waiting pods fill beyond what stands and comes.

Decisions:
- ``fixed at peak`` stands at the measured days' own ideal peak from the beginning: the cheapest fixed fleet that nobody
  waits for, known only afterwards.
- ``kpo + cluster-autoscaler``: looks every 10 s; a node goes after 10 min without pods, and none within 10 min after
  the last scale-out (``--scale-down-unneeded-time``, ``--scale-down-delay-after-add``).
- ``karpenter``: nodes are asked for a second after the first pod waits; an empty node goes after 30 s
  (``consolidateAfter``). Pods of running tasks are not moved.
- ``ski-rental timer``: as Karpenter, but an empty node stays for the pool's median boot time: the best that is possible
  without a forecast (2-competitive).
"""

from __future__ import annotations

from collections.abc import Sequence

from airflow_elastic.simulator.cluster import SimNode, SimPod, SimPool
from airflow_elastic.simulator.world import World

__all__ = ["ClusterAutoscaler", "FixedAtPeak", "Reactive", "nodes_for_pending"]


def nodes_for_pending(pool: SimPool, pending: Sequence[SimPod]) -> int:
    """Return the new nodes that pending pods of the pool fill beyond those that come already (first fit)."""
    rooms: list[list[int]] = [list(pool.room) for _ in pool.coming]
    new = 0
    for pod in pending:
        amounts = pod.amounts
        for room in rooms:
            if not any(map(int.__lt__, room, amounts)):
                break
        else:
            if any(map(int.__lt__, pool.room, amounts)):
                continue
            room = list(pool.room)
            rooms.append(room)
            new += 1
        for i, amount in enumerate(amounts):
            room[i] -= amount
    return new


class FixedAtPeak:
    """A fleet that never changes."""

    name = "fixed at peak"

    def __init__(self, nodes: dict[str, int]) -> None:
        self.nodes = nodes

    def begin(self, world: World) -> None:
        """Start the fleet; the lead-in is time enough for it to boot."""
        for name, count in self.nodes.items():
            world.cluster.launch(world.cluster.pools[name], count)

    def changed(self) -> None:
        """Nothing ever changes."""


class Reactive:
    """Brings nodes for pods that wait, removes nodes that have been empty for a while."""

    def __init__(self, name: str, *, react_seconds: float = 1.0, empty_seconds: float | None = None) -> None:
        """Make the policy; ``empty_seconds`` None: the pool's median boot time."""
        self.name = name
        self.react_seconds = react_seconds
        self.empty_seconds = empty_seconds
        self.world: World
        self._due: float | None = None

    def begin(self, world: World) -> None:
        """Start with nothing."""
        self.world = world
        self.changed()

    def changed(self) -> None:
        """Look again soon."""
        self._look_at(self._first_look())

    def _first_look(self) -> float:
        return self.world.now + self.react_seconds

    def _look_at(self, at: float) -> None:
        if self._due is None or at < self._due:
            self._due = at
            self.world.engine.at(at, self._look, at)

    def _look(self, at: float) -> None:
        if at != self._due:
            return
        self._due = None
        self._grow()
        following = self._shrink()
        if following is not None:
            self._look_at(max(following, self.world.now + self.react_seconds))

    def least(self, pool: SimPool) -> int:
        """Return the machines that the pool is to have whatever runs."""
        return pool.pool.min_nodes

    def _grow(self) -> None:
        cluster = self.world.cluster
        for pool in cluster.pools.values():
            waiting = [pod for pod in cluster.pending if self._pool_of(pod) is pool]
            new = nodes_for_pending(pool, waiting) if waiting else 0
            new = max(new, self.least(pool) - pool.size)
            new = min(new, pool.pool.max_nodes - pool.size)
            if new > 0:
                self._launch(pool, new)

    def _pool_of(self, pod: SimPod) -> SimPool | None:
        """Return the pool that is grown for a pod: the first of its class that can grow now."""
        now = self.world.now
        able = [each for each in pod.pools if each.size < each.pool.max_nodes and not each.truth.stock_out_until(now)]
        return able[0] if able else pod.pools[0] if pod.pools else None

    def _launch(self, pool: SimPool, count: int) -> None:
        self.world.cluster.launch(pool, count)

    def _limit(self, pool: SimPool) -> float:
        return pool.truth.boot_seconds if self.empty_seconds is None else self.empty_seconds

    def _may_shrink_from(self, pool: SimPool) -> float:
        """Return the earliest moment at which the pool may give nodes back."""
        return float("-inf")

    def _shrink(self) -> float | None:
        """Remove what has been empty for long enough; return when the next one will have been."""
        now, following = self.world.now, None
        for pool in self.world.cluster.pools.values():
            empty = [node for node in pool.nodes if node.idle_since is not None]
            empty.sort(key=self._age)
            for node in empty:
                due = max((node.idle_since or now) + self._limit(pool), self._may_shrink_from(pool))
                if pool.size <= self.least(pool):
                    break
                if due <= now + 1e-6:
                    self.world.cluster.remove(node)
                else:
                    following = due if following is None else min(following, due)
        return following

    @staticmethod
    def _age(node: SimNode) -> tuple[float, str]:
        return node.idle_since or 0.0, node.name


class ClusterAutoscaler(Reactive):
    """The scan loop of cluster-autoscaler, optionally above a minimum that moves with time."""

    def __init__(self, name: str = "kpo + cluster-autoscaler", *, scan_seconds: float = 10.0,
                 unneeded_seconds: float = 600.0, after_add_seconds: float = 600.0) -> None:  # fmt: skip
        super().__init__(name, react_seconds=scan_seconds, empty_seconds=unneeded_seconds)
        self.after_add_seconds = after_add_seconds
        self._added_at: dict[str, float] = {}

    def _first_look(self) -> float:
        # Scans fall on a grid; those that would find nothing new are left out.
        step = self.react_seconds
        return (self.world.now // step + 1.0) * step

    def _launch(self, pool: SimPool, count: int) -> None:
        self._added_at[pool.name] = self.world.now
        super()._launch(pool, count)

    def _may_shrink_from(self, pool: SimPool) -> float:
        return self._added_at.get(pool.name, float("-inf")) + self.after_add_seconds
