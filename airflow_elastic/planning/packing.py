"""Places the table of demand on nodes over time and counts the nodes that each pool needs.

First fit decreasing over all resources at once; what was placed stays where it is until it ends, because Kubernetes
moves no pod. The timeline is played three times, with early, median and late times of every task; each of the three is
a possible course of events, so a chain of tasks never counts twice. The need is the largest of the three.

Time is looked at when something starts or ends, at ``MOST_STEPS`` moments at most: in a larger world an even
choice of these moments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from airflow_elastic.model.snapshot import Node
from airflow_elastic.planning.demand import Demand
from airflow_elastic.planning.pools import PoolView
from airflow_elastic.planning.release import Standing
from airflow_elastic.planning.vectors import FloatArray, IntArray, ResourceIndex

__all__ = ["MOST_STEPS", "NeedOverTime", "Rooms", "pack", "room_of_new_node"]

MOST_STEPS = 96
_EPSILON = 1e-6


@dataclass(slots=True)
class Rooms:
    """Rows of nodes, pool by pool: those that stand (likely to stay first), those that boot, then possible new ones."""

    free: FloatArray
    """Allocatable less foreign pods; our own pods are placed by ``pack``."""
    begin: dict[str, int]
    standing_end: dict[str, int]
    end: dict[str, int]
    row_of_node: IntArray
    """Row of each node of the snapshot, −1 where it offers nothing."""


@dataclass(frozen=True, slots=True)
class NeedOverTime:
    """What each pool needs at each moment, and where things went."""

    times: FloatArray
    nodes: dict[str, IntArray]
    """Nodes with something on them, by pool; never more than the pool can have."""
    overflow: dict[str, IntArray]
    """Nodes beyond that which the demand would fill."""
    pool_of_item: tuple[str, ...]
    """Where each row of the demand was placed on the early timeline; empty: nowhere (yet)."""
    row_of_item: IntArray
    pods_now: dict[str, int]
    """Nodes that the pods which exist take now or as soon as they are bound."""
    next_use: dict[str, tuple[float, int]]
    """For each node that something new is placed on: when at the earliest, and by which row of the demand."""


def room_of_new_node(view: PoolView, index: ResourceIndex) -> FloatArray:
    """Return what a new node will offer: the pool's shape less what every standing node carries (daemonsets)."""
    room = index.room(view.pool.shape)
    if len(view.usable) < 2:  # on a single node a daemonset looks like any other foreign pod
        return room
    foreign = np.min([index.amounts(node.foreign) for node in view.usable], axis=0)
    return np.asarray(np.maximum(room - foreign, 0.0))


def build_rooms(
    demand: Demand,
    nodes: Sequence[Node],
    views: Mapping[str, PoolView],
    index: ResourceIndex,
    standing: Standing,
) -> Rooms:
    """Lay out the rows of all pools for this demand: needs fall last on the nodes that would be released first."""
    node_index = {node.name: i for i, node in enumerate(nodes)}
    pinned_until: dict[int, float] = {}
    bound = np.flatnonzero(demand.node >= 0)
    for node, until in zip(demand.node[bound].tolist(), demand.ends[1, bound].tolist(), strict=True):
        pinned_until[node] = max(until, pinned_until.get(node, 0.0))
    wishes: dict[str, int] = {}
    for kind, count in enumerate(np.bincount(demand.kind[demand.node < 0], minlength=len(demand.kinds)).tolist()):
        for name in demand.kind_pools[kind] if count else ():
            wishes[name] = wishes.get(name, 0) + count
    rows: list[FloatArray] = []
    size = 0
    row_of_node = np.full(len(nodes), -1, dtype=np.int64)
    rooms = Rooms(np.empty((0, len(index.names))), {}, {}, {}, row_of_node)
    for name, view in views.items():
        rooms.begin[name] = size

        ranked = [(standing.is_free(n), -pinned_until.get(node_index[n.name], 0.0), n) for n in view.usable]
        ranked.sort(key=lambda each: (each[0], each[1], -standing.idle_from(each[2])[0], each[2].name))
        rows_here = [*(each[2] for each in ranked), *sorted(view.booting, key=_by_age)]
        for node in rows_here:
            room = index.room(node.allocatable if node.allocatable.amounts else view.pool.shape)
            rows.append(room - index.amounts(node.foreign))
            row_of_node[node_index[node.name]] = size
            size += 1
        rooms.standing_end[name] = size
        new = min(max(view.reachable - len(rows_here), 0), wishes.get(name, 0))
        if new:
            rows.extend([room_of_new_node(view, index)] * new)
            size += new
        rooms.end[name] = size
    if rows:
        rooms.free = np.array(rows)
    return rooms


def _by_age(node: Node) -> tuple[float, str]:
    return node.created_at, node.name


class _Timeline:
    """One course of events."""

    def __init__(
        self, demand: Demand, rooms: Rooms, requests: FloatArray, size: FloatArray, new: Mapping[str, FloatArray]
    ) -> None:
        self.demand, self.rooms, self.requests, self.size, self.new = demand, rooms, requests, size, new
        self.free = rooms.free.copy()
        self.active = np.zeros(len(self.free), dtype=np.int64)
        self.row = np.full(len(demand.kind), -1, dtype=np.int64)
        self.opened = dict(rooms.standing_end)
        self.left_over: dict[str, int] = {}
        self.first_use = np.full(len(self.free), np.inf)
        self.first_item = np.full(len(self.free), -1, dtype=np.int64)
        self.at = 0.0

    def put(self, items: IntArray, rows: IntArray) -> None:
        """Occupy ``rows`` by ``items``, one each."""
        np.subtract.at(self.free, rows, self.requests[self.demand.kind[items]])
        np.add.at(self.active, rows, 1)
        self.row[items] = rows

    def end(self, items: IntArray) -> None:
        """Give back what ended items held."""
        items = items[self.row[items] >= 0]
        if len(items):
            rows = self.row[items]
            np.add.at(self.free, rows, self.requests[self.demand.kind[items]])
            np.subtract.at(self.active, rows, 1)

    def start(self, items: IntArray, ends: FloatArray) -> None:
        """Place items that begin together: the most bound and largest first, longest first within a kind."""
        if not len(items):
            return
        now_first = 1 - self.demand.is_now[items]
        order = np.lexsort((-ends[items], self.demand.kind[items], now_first))
        items = items[order]
        keys = np.stack((now_first[order], self.demand.kind[items]))
        cuts = np.flatnonzero(np.any(keys[:, 1:] != keys[:, :-1], axis=0)) + 1
        groups = np.split(items, cuts)
        groups.sort(
            key=lambda group: (
                1 - int(self.demand.is_now[group[0]]),
                len(self.demand.kind_pools[int(self.demand.kind[group[0]])]),
                -float(self.size[self.demand.kind[group[0]]]),
                int(self.demand.kind[group[0]]),
            )
        )
        for group in groups:
            self._place(group)

    def _place(self, items: IntArray) -> None:
        kind = int(self.demand.kind[items[0]])
        pools = self.demand.kind_pools[kind]
        if self.demand.is_now[items[0]]:  # kube-scheduler takes what stands before anybody brings a node
            for name in pools:
                items = self._fill(items, kind, name, self.rooms.standing_end[name])
        for name in pools:
            items = self._fill(items, kind, name, self.rooms.end[name])
        if len(items):
            name = pools[0]
            self.left_over[name] = self.left_over.get(name, 0) + self._nodes_for(len(items), kind, name)

    def _fill(self, items: IntArray, kind: int, name: str, end: int) -> IntArray:
        """Place as many items as fit on the pool's rows before ``end``; return the others."""
        begin = self.rooms.begin[name]
        end = min(end, self.opened[name] + len(items))
        if not len(items) or end <= begin:
            return items
        asked = self.requests[kind]
        named = asked > 0
        fits = np.floor((self.free[begin:end, named] + _EPSILON) / asked[named]).min(axis=1)
        fits = np.clip(fits, 0, len(items)).astype(np.int64)
        total = np.cumsum(fits)
        placed = min(int(total[-1]), len(items))
        if placed:
            rows = begin + np.searchsorted(total, np.arange(1, placed + 1))
            self.put(items[:placed], rows)
            fresh = np.flatnonzero(np.isinf(self.first_use[rows]))[::-1]
            self.first_item[rows[fresh]] = items[fresh]
            self.first_use[rows[fresh]] = self.at
            self.opened[name] = max(self.opened[name], int(rows[-1]) + 1)
        return items[placed:]

    def _nodes_for(self, count: int, kind: int, name: str) -> int:
        """Return how many further new nodes ``count`` pods of a kind would fill."""
        asked = self.requests[kind]
        named = asked > 0
        room = self.new[name][named]
        each = int(np.floor((room + _EPSILON) / asked[named]).min()) if named.any() else count
        return -(-count // max(each, 1))

    def used(self) -> dict[str, int]:
        """Return the nodes with something on them, by pool."""
        total = np.concatenate(([0], np.cumsum(self.active > 0)))
        return {name: int(total[self.rooms.end[name]] - total[self.rooms.begin[name]]) for name in self.rooms.begin}


def pack(
    demand: Demand,
    nodes: Sequence[Node],
    views: Mapping[str, PoolView],
    index: ResourceIndex,
    standing: Standing,
) -> NeedOverTime:
    """Play the three timelines and return the nodes needed over time."""
    now = standing.now
    rooms = build_rooms(demand, nodes, views, index, standing)
    requests = index.amounts_of(kind.requests for kind in demand.kinds)
    new = {name: room_of_new_node(view, index) for name, view in views.items()}
    largest = np.max([*new.values()], axis=0) if new else np.ones(len(index.names))
    size = (requests / np.maximum(largest, 1.0)).max(axis=1) if len(requests) else np.zeros(0)
    bound = np.flatnonzero(demand.node >= 0)
    bound_rows = rooms.row_of_node[demand.node[bound]]
    pinned, pinned_rows = bound[bound_rows >= 0], bound_rows[bound_rows >= 0]
    free = np.flatnonzero(demand.node < 0)

    times = _moments(demand, free, now, now + max((view.window_seconds for view in views.values()), default=0.0))
    need = {name: np.zeros(len(times), dtype=np.int64) for name in views}
    overflow = {name: np.zeros(len(times), dtype=np.int64) for name in views}
    pods_now: dict[str, int] = dict.fromkeys(views, 0)
    placed = np.full(len(demand.kind), -1, dtype=np.int64)
    first_use = np.full(len(rooms.free), np.inf)
    first_item = np.full(len(rooms.free), -1, dtype=np.int64)
    certain = np.array_equal(demand.starts[0], demand.starts[2]) and np.array_equal(demand.ends[0], demand.ends[2])
    for course in (0,) if certain else (0, 1, 2):
        line = _Timeline(demand, rooms, requests, size, new)
        line.put(pinned, pinned_rows)
        starts, ends = demand.starts[course], demand.ends[course]
        line.at = now
        waiting_pods = free[demand.is_pod[free] > 0]
        line.start(waiting_pods, ends)
        if course == 0:
            pods_now = line.used()
        rest = free[demand.is_pod[free] == 0]
        by_start = rest[np.argsort(starts[rest], kind="stable")]
        by_end = np.argsort(ends, kind="stable")
        s = e = 0
        for step, at in enumerate(times.tolist()):
            e_next = int(np.searchsorted(ends[by_end], at, side="right"))
            line.end(by_end[e:e_next])
            e = e_next
            s_next = int(np.searchsorted(starts[by_start], at, side="right"))
            begun = by_start[s:s_next]
            s = s_next
            line.at = at
            if step:
                line.left_over = {}
            line.start(begun[ends[begun] > at], ends)
            for name, count in line.used().items():
                need[name][step] = max(need[name][step], count)
            for name, count in line.left_over.items():
                overflow[name][step] = max(overflow[name][step], count)
        if course == 0:
            placed = line.row
        sooner = line.first_use < first_use
        first_use[sooner], first_item[sooner] = line.first_use[sooner], line.first_item[sooner]
    names = list(views)
    bounds = np.array([rooms.end[name] for name in names], dtype=np.int64)
    where = np.searchsorted(bounds, placed, side="right")
    pool_of_item = tuple(names[i] if row >= 0 else "" for i, row in zip(where.tolist(), placed.tolist(), strict=True))
    next_use = {
        node.name: (float(first_use[row]), int(first_item[row]))
        for node, row in zip(nodes, rooms.row_of_node.tolist(), strict=True)
        if row >= 0 and first_item[row] >= 0
    }
    return NeedOverTime(times, need, overflow, pool_of_item, placed, pods_now, next_use)


def _moments(demand: Demand, free: IntArray, now: float, until: float) -> FloatArray:
    """Return the moments to look at: now, and when something starts (or ends, where there is room for that)."""
    starts = np.unique(demand.starts[:, free])
    starts = starts[(starts > now) & (starts <= until)]
    if len(starts) >= MOST_STEPS:
        starts = starts[np.linspace(0, len(starts) - 1, MOST_STEPS - 1).round().astype(np.int64)]
        return np.concatenate(([now], starts))
    ends = np.unique(demand.ends[1])
    both = np.union1d(starts, ends[(ends > now) & (ends <= until)])
    return np.concatenate(([now], both if len(both) < MOST_STEPS else starts))
