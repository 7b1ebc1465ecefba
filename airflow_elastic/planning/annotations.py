"""Nodes that runs ask for themselves: held from the start of the run, on top of what its tasks already take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from airflow_elastic.model.demand import RunPhase
from airflow_elastic.model.plan import Refusal
from airflow_elastic.model.reasons import Reason, ReasonCode
from airflow_elastic.model.settings import Settings
from airflow_elastic.planning.demand import Demand, RunDemand, first_pool
from airflow_elastic.planning.packing import NeedOverTime
from airflow_elastic.planning.pools import PoolView
from airflow_elastic.planning.vectors import IntArray

__all__ = ["Hold", "holds_of", "refused_annotations"]


@dataclass(frozen=True, slots=True)
class Hold:
    """``nodes`` of a pool for one run, from ``start`` until ``until``."""

    owner: int
    """Index of the run in the demand."""
    node_pool: str
    nodes: int
    start: float
    until: float

    def extra(self, demand: Demand, need: NeedOverTime) -> IntArray:
        """Return how many nodes the hold adds at each moment to those that the run's own pods take."""
        mine = np.flatnonzero((demand.owner == self.owner) & (need.row_of_item >= 0))
        mine = mine[[need.pool_of_item[i] == self.node_pool for i in mine.tolist()]] if len(mine) else mine
        rows, starts, ends = need.row_of_item[mine], demand.starts[0, mine], demand.ends[0, mine]
        counts = np.zeros(len(need.times), dtype=np.int64)
        for step, at in enumerate(need.times.tolist()):
            if self.start <= at < self.until:
                taken = len(np.unique(rows[(starts <= at) & (ends > at)]))
                counts[step] = max(self.nodes - taken, 0)
        return counts


def holds_of(demand: Demand, settings: Settings, views: Mapping[str, PoolView]) -> list[Hold]:
    """Return what the annotations of runs hold; those whose reservation has expired hold nothing."""
    holds = []
    for owner, each in enumerate(demand.runs):
        annotation = each.run.annotation
        if annotation is None or annotation.nodes <= 0:
            continue
        kinds = each.facts.kinds
        name = annotation.capacity_class or (kinds[0].capacity_class if kinds else "")
        capacity_class = settings.capacity_class(name)
        pool = first_pool(capacity_class.node_pools, views) if capacity_class else ""
        start = each.run.starts_at if each.run.phase is RunPhase.ACTIVE else each.base
        until = _until(each, start, settings)
        if pool and until > start and (*each.key, pool) not in demand.expired:
            holds.append(Hold(owner, pool, min(annotation.nodes, settings.limits.max_nodes), start, until))
    return holds


def _until(each: RunDemand, start: float, settings: Settings) -> float:
    longest = settings.limits.max_hold_seconds
    seconds = each.run.annotation.hold_seconds if each.run.annotation else 0.0
    if seconds > 0:
        return start + min(seconds, longest)
    if len(each.intervals.spec):
        return each.base + float(each.intervals.ends[2].max())
    # Nothing (more) of it needs a node: over, unless the run never had such a task and only asks for the room.
    return start if each.facts.kinds else min(each.ends_at, start + longest)


def refused_annotations(demand: Demand) -> list[Refusal]:
    """Return a refusal for each annotation that is not honoured, in whole or in part."""
    return [
        Refusal(
            each.run.dag_id,
            Reason.of(
                ReasonCode.ANNOTATION_REFUSED,
                dag_id=each.run.dag_id,
                run_id=each.run.run_id,
                why=each.run.annotation.refused,
            ),
        )
        for each in demand.runs
        if each.run.annotation is not None and each.run.annotation.refused
    ]
