"""What one run needs of each node pool on its own: for its forecast and its reservation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from airflow_elastic.planning.demand import RunDemand, first_pool
from airflow_elastic.planning.pools import PoolView
from airflow_elastic.planning.shapes import Intervals, Kind, PoolNeed, ShapeFacts
from airflow_elastic.planning.validate import Feasibility
from airflow_elastic.planning.vectors import FloatArray, IntArray, ResourceIndex

__all__ = ["Needs", "nodes_for"]

_EPSILON = 1e-6


class Needs:
    """The needs of runs in one plan; those of fresh runs are worked out once for each DAG structure."""

    def __init__(
        self,
        views: Mapping[str, PoolView],
        feasibility: Feasibility,
        index: ResourceIndex,
        rooms: Mapping[str, FloatArray],
    ) -> None:
        self._views, self._feasibility, self._index, self._rooms = views, feasibility, index, rooms
        self._room_keys = {name: (name, *room.tolist()) for name, room in rooms.items()}
        self._chosen: dict[int, tuple[str, ...]] = {}
        self._fresh: dict[int, tuple[PoolNeed, ...]] = {}

    def of(self, each: RunDemand) -> tuple[PoolNeed, ...]:
        """Return a run's needs by the node pool where its pods are planned first."""
        facts = each.facts
        if each.intervals is not facts.fresh_intervals:
            return self._work_out(facts, each.intervals, self._pools_of(facts))
        known = self._fresh.get(id(facts))
        if known is None:
            known = self._fresh[id(facts)] = self._remembered(facts)
        return known

    def _pools_of(self, facts: ShapeFacts) -> tuple[str, ...]:
        chosen = self._chosen.get(id(facts))
        if chosen is None:
            pools = (self._feasibility.pools_for(kind) for kind in facts.kinds)
            chosen = self._chosen[id(facts)] = tuple(first_pool(names, self._views) for names in pools)
        return chosen

    def _remembered(self, facts: ShapeFacts) -> tuple[PoolNeed, ...]:
        """Return a fresh run's needs: always the same as long as new nodes of the chosen pools look the same."""
        chosen = self._pools_of(facts)
        key = (self._index.names, chosen, *(self._room_keys.get(name) for name in dict.fromkeys(chosen)))
        known = facts.needs.get(key)
        if known is None:
            facts.needs.clear()
            known = facts.needs[key] = self._work_out(facts, facts.fresh_intervals, chosen)
        return known

    def _work_out(self, facts: ShapeFacts, intervals: Intervals, chosen: tuple[str, ...]) -> tuple[PoolNeed, ...]:
        if not len(intervals.spec) or not facts.kinds:
            return ()
        needs = []
        kinds = facts.kind_of_spec[intervals.spec]
        for name in dict.fromkeys(chosen):
            if not name:
                continue
            here = np.array([*(pool == name for pool in chosen), False])[kinds]
            if here.any():
                needs.append(self._on_pool(name, facts.kinds, kinds[here], intervals, here))
        return tuple(needs)

    def _on_pool(
        self, name: str, kinds: Sequence[Kind], kind: IntArray, intervals: Intervals, here: IntArray
    ) -> PoolNeed:
        starts, ends, count = intervals.starts[:, here], intervals.ends[:, here], intervals.count[here]
        requests = self._index.amounts_of(each.requests for each in kinds)
        room = self._rooms[name]
        first = float(starts[0].min())
        # Amounts in use at each start by the median times; the node count is only worked out where they are largest.
        moments = np.unique(starts[1])
        active = ((starts[1] <= moments[:, None]) & (ends[1] > moments[:, None])) * count
        load = active @ requests[kind] / np.maximum(room, 1.0)
        busiest = int(np.argmax(load.max(axis=1)))
        peak = np.bincount(kind, active[busiest], minlength=len(kinds))
        opening = np.bincount(kind, count * (starts[0] <= first + 1.0), minlength=len(kinds))
        rows = requests.tolist()
        return PoolNeed(
            name,
            first,
            float(ends[2].max()),
            nodes_for(peak.astype(np.int64).tolist(), rows, room.tolist()),
            nodes_for(opening.astype(np.int64).tolist(), rows, room.tolist()),
        )


def nodes_for(counts: Sequence[int], requests: Sequence[Sequence[float]], room: Sequence[float]) -> int:
    """Return the empty nodes that first fit decreasing fills with ``counts`` pods of each kind."""
    used = [i for i, count in enumerate(counts) if count > 0]
    size = {i: max(asked / max(has, 1.0) for asked, has in zip(requests[i], room, strict=True)) for i in used}
    groups: list[tuple[int, list[float]]] = []  # nodes alike: (how many, what is left on each)
    for kind in sorted(used, key=lambda i: (-size[i], i)):
        asked, left = requests[kind], counts[kind]
        after: list[tuple[int, list[float]]] = []
        for many, free in groups:
            each = min(_fits(free, asked), left)
            full = min(many, left // each) if each else 0
            left -= full * each
            if full:
                after.append((full, _less(free, asked, each)))
            rest = many - full
            if rest and 0 < left < each:
                after.append((1, _less(free, asked, left)))
                rest, left = rest - 1, 0
            if rest:
                after.append((rest, free))
        each = max(_fits(room, asked), 1)
        if left >= each:
            after.append((left // each, _less(room, asked, each)))
        if left % each:
            after.append((1, _less(room, asked, left % each)))
        groups = after
    return sum(many for many, _ in groups)


def _fits(free: Sequence[float], asked: Sequence[float]) -> int:
    return int(min((f + _EPSILON) // a for f, a in zip(free, asked, strict=True) if a > 0)) if any(asked) else 0


def _less(free: Sequence[float], asked: Sequence[float], times: int) -> list[float]:
    return [f - a * times for f, a in zip(free, asked, strict=True)]
