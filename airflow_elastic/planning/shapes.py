"""What a DAG's structure means under given settings, worked out once per structure: kinds of pods and a fresh skyline.

The controller plans every second and the structure of a DAG changes rarely, so the result is kept for the very object
that it was made from. That is a matter of speed alone: the same input always gives the same result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from airflow_elastic.model.demand import DagShape, TaskSpec
from airflow_elastic.model.resources import Resources
from airflow_elastic.model.settings import Settings
from airflow_elastic.planning.quantiles import early_factor
from airflow_elastic.planning.skyline import GroupKind, Skyline, early, late, project
from airflow_elastic.planning.vectors import FloatArray, IntArray, one_pod

__all__ = ["Intervals", "Kind", "PoolNeed", "ShapeFacts", "intervals_of", "kind_of", "shape_facts"]

_KEPT_SHAPES = 20_000


@dataclass(frozen=True, slots=True)
class Kind:
    """What the planner distinguishes pods by: class, admissible node pools in order of preference, requests."""

    capacity_class: str
    node_pools: tuple[str, ...]
    requests: Resources


@dataclass(frozen=True, slots=True)
class Intervals:
    """Instances that want a node, one row for each group; times relative to the skyline's base, early/median/late."""

    spec: IntArray
    count: IntArray
    is_now: FloatArray
    """1.0 where the group wants its node at once."""
    starts: FloatArray
    """Shape (3, rows)."""
    ends: FloatArray
    map_index: IntArray
    """Map index of a running instance; −2 where the row stands for several or for one that has not started."""
    first: float
    """The earliest start; infinite without rows."""


@dataclass(frozen=True, slots=True)
class PoolNeed:
    """Needs of one run on one pool, in seconds relative to the run's base."""

    node_pool: str
    first: float
    """Early time at which its first pod there is ready."""
    last: float
    """Late end of its last pod there."""
    peak_nodes: int
    first_nodes: int
    """Nodes for what is ready at (or very soon after) ``first``."""


@dataclass(slots=True)
class ShapeFacts:
    """Everything about a DAG's structure that does not depend on the moment."""

    shape: DagShape
    settings: Settings
    kinds: tuple[Kind, ...]
    kind_of_spec: IntArray
    """Index into ``kinds``; −1: needs no node, or names an unknown class."""
    early_factors: FloatArray
    """By task: how far on the early side its node has to be usable (its class's price of waiting)."""
    unknown_class: tuple[tuple[str, str], ...]
    """(task id, class that the settings do not have)"""
    most_slots: dict[str, int]
    """The largest ``pool_slots`` among the tasks of each class that go through the class's own Airflow pool."""
    fresh: Skyline
    fresh_intervals: Intervals
    needs: dict[tuple[object, ...], tuple[PoolNeed, ...]] = field(default_factory=dict)
    """What ``need.Needs`` worked out for fresh runs, by the node pools chosen and what their nodes offer."""


def kind_of(spec: TaskSpec, settings: Settings) -> Kind | None:
    """Return the kind of a task's pod, or None when its class is unknown."""
    capacity_class = settings.capacity_class(spec.capacity_class)
    if capacity_class is None:
        return None
    requests = spec.requests if any(name != "pods" for name in spec.requests.names) else settings.default_requests
    return Kind(capacity_class.name, spec.node_pools or capacity_class.node_pools, one_pod(requests))


def intervals_of(skyline: Skyline, factors: FloatArray, base: float) -> Intervals:
    """Turn a skyline into arrays of early, median and late times relative to ``base``."""
    groups = skyline.groups
    starts = np.empty((3, len(groups)))
    ends = np.empty((3, len(groups)))
    for j, group in enumerate(groups):
        factor = float(factors[group.spec])
        starts[0, j] = early(group.start, factor, base)
        starts[1, j] = group.start.at
        starts[2, j] = late(group.start)
        ends[0, j] = group.end.at - factor * math.sqrt(group.end.low)
        ends[1, j] = group.end.at
        ends[2, j] = late(group.end)
    ends = np.maximum(ends, starts + 0.05)
    return Intervals(
        spec=np.array([group.spec for group in groups], dtype=np.int64),
        count=np.array([group.count for group in groups], dtype=np.int64),
        is_now=np.array([group.kind is not GroupKind.LATER for group in groups], dtype=np.float64),
        starts=starts - base,
        ends=ends - base,
        map_index=np.array([-2 if g.map_index is None else g.map_index for g in groups], dtype=np.int64),
        first=float(starts[0].min()) - base if groups else math.inf,
    )


def _facts(shape: DagShape, settings: Settings) -> ShapeFacts:
    kinds: dict[Kind, int] = {}
    kind_of_spec: list[int] = []
    factors: list[float] = []
    unknown: list[tuple[str, str]] = []
    factor_of = {each.name: early_factor(each.ready_quantile) for each in settings.classes}
    pool_of = {each.name: each.airflow_pool for each in settings.classes}
    most_slots: dict[str, int] = {}
    seen: dict[tuple[str, tuple[str, ...], Resources], Kind | None] = {}
    for spec in shape.tasks:
        if not spec.needs_node:
            kind_of_spec.append(-1)
            factors.append(1.0)
            continue
        key = (spec.capacity_class, spec.node_pools, spec.requests)
        if key not in seen:
            seen[key] = kind_of(spec, settings)
        kind = seen[key]
        if kind is None:
            unknown.append((spec.task_id, spec.capacity_class))
        elif spec.pool == pool_of[kind.capacity_class]:
            most_slots[kind.capacity_class] = max(most_slots.get(kind.capacity_class, 0), spec.pool_slots)
        factors.append(factor_of[kind.capacity_class] if kind else 1.0)
        kind_of_spec.append(kinds.setdefault(kind, len(kinds)) if kind else -1)
    fresh = project(shape, 0.0)
    early_factors = np.array(factors, dtype=np.float64)
    return ShapeFacts(
        shape=shape,
        settings=settings,
        kinds=tuple(kinds),
        kind_of_spec=np.array(kind_of_spec, dtype=np.int64),
        early_factors=early_factors,
        unknown_class=tuple(unknown),
        most_slots=most_slots,
        fresh=fresh,
        fresh_intervals=intervals_of(fresh, early_factors, 0.0),
    )


_kept: dict[int, ShapeFacts] = {}


def shape_facts(shape: DagShape, settings: Settings) -> ShapeFacts:
    """Return the facts of a structure, from memory where this very object was seen under these very settings."""
    kept = _kept.get(id(shape))
    # The kept facts hold the shape, so its id cannot have been given to another object.
    if kept is not None and kept.shape is shape and kept.settings is settings:
        return kept
    if len(_kept) >= _KEPT_SHAPES:
        for old in list(_kept)[: _KEPT_SHAPES // 2]:
            del _kept[old]
    facts = _kept[id(shape)] = _facts(shape, settings)
    return facts
