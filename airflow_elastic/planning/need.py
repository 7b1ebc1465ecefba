"""What one run needs of each node pool on its own: for its forecast and its reservation."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from airflow_elastic.planning.demand import RunDemand, first_pool
from airflow_elastic.planning.pools import PoolView
from airflow_elastic.planning.shapes import Intervals, PoolNeed, ShapeFacts
from airflow_elastic.planning.validate import Feasibility
from airflow_elastic.planning.vectors import FloatArray, ResourceIndex

__all__ = ["needs_of", "nodes_for"]

_EPSILON = 1e-6


def needs_of(
    each: RunDemand,
    views: Mapping[str, PoolView],
    feasibility: Feasibility,
    index: ResourceIndex,
    rooms: Mapping[str, FloatArray],
) -> tuple[PoolNeed, ...]:
    """Return a run's needs by the node pool where its pods are planned first."""
    facts = each.facts
    chosen = tuple(first_pool(feasibility.pools_for(kind), views) for kind in facts.kinds)
    if each.intervals is not facts.fresh_intervals:
        return _needs(facts, each.intervals, chosen, index, rooms)
    # A fresh run needs what every fresh run of this structure needs, as long as new nodes look the same.
    key = (*chosen, *(f"{name}{room.tolist()}" for name, room in rooms.items() if name in chosen))
    known = facts.needs.get(key)
    if known is None:
        known = facts.needs[key] = _needs(facts, each.intervals, chosen, index, rooms)
    return known


def _needs(
    facts: ShapeFacts,
    intervals: Intervals,
    chosen: tuple[str, ...],
    index: ResourceIndex,
    rooms: Mapping[str, FloatArray],
) -> tuple[PoolNeed, ...]:
    if not len(intervals.spec) or not facts.kinds:
        return ()
    kinds = facts.kind_of_spec[intervals.spec]
    requests = index.amounts_of(kind.requests for kind in facts.kinds)
    needs = []
    for name in dict.fromkeys(chosen):
        here = np.array([pool == name for pool in (*chosen, "")])[kinds] if name else np.zeros(len(kinds), dtype=bool)
        rows = np.flatnonzero(here & (kinds >= 0))
        if not len(rows):
            continue
        starts, ends = intervals.starts[:, rows], intervals.ends[:, rows]
        first = float(starts[0].min())
        moments = np.unique(starts[1])
        active = (starts[1][None, :] <= moments[:, None]) & (ends[1][None, :] > moments[:, None])
        counts = np.zeros((len(moments), len(facts.kinds)), dtype=np.int64)
        for kind in np.unique(kinds[rows]).tolist():
            of_kind = kinds[rows] == kind
            counts[:, kind] = (active[:, of_kind] * intervals.count[rows][of_kind]).sum(axis=1)
        different = np.unique(counts, axis=0)
        peak = max(nodes_for(row, requests, rooms[name]) for row in different)
        at_once = starts[0] <= first + 1.0
        opening = np.bincount(kinds[rows][at_once], intervals.count[rows][at_once], minlength=len(facts.kinds))
        needs.append(
            PoolNeed(
                name, first, float(ends[2].max()), peak, nodes_for(opening.astype(np.int64), requests, rooms[name])
            )
        )
    return tuple(needs)


def nodes_for(counts: np.ndarray[tuple[int], np.dtype[np.int64]], requests: FloatArray, room: FloatArray) -> int:
    """Return the empty nodes that first fit decreasing fills with ``counts`` pods of each kind."""
    nodes = np.empty((0, len(room)))
    size = (requests / np.maximum(room, 1.0)).max(axis=1)
    for kind in sorted(np.flatnonzero(counts).tolist(), key=lambda i: (-size[i], i)):
        left = int(counts[kind])
        named = requests[kind] > 0
        if len(nodes):
            fits = np.floor((nodes[:, named] + _EPSILON) / requests[kind, named]).min(axis=1).astype(np.int64)
            before = np.cumsum(fits) - fits
            take = np.clip(left - before, 0, fits)
            nodes -= take[:, None] * requests[kind]
            left -= int(take.sum())
        if left > 0:
            each = max(int(np.floor((room[named] + _EPSILON) / requests[kind, named]).min()), 1)
            new = np.repeat([room], -(-left // each), axis=0)
            taken = np.full(len(new), each)
            taken[-1] = left - each * (len(new) - 1)
            nodes = np.concatenate((nodes, new - taken[:, None] * requests[kind]))
    return len(nodes)
