"""How many nodes each pool should have: out at once, in late and with a cool-down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from airflow_elastic.model.demand import RunPhase
from airflow_elastic.model.plan import NodePoolForecast, Refusal, SetNodes
from airflow_elastic.model.reasons import Reason, ReasonCode
from airflow_elastic.model.snapshot import Snapshot
from airflow_elastic.planning.annotations import Hold
from airflow_elastic.planning.demand import NO_OWNER, Demand
from airflow_elastic.planning.packing import NeedOverTime
from airflow_elastic.planning.pools import PoolView
from airflow_elastic.planning.release import Released, Standing, Uses, choose_release, cooling_seconds, kept_nodes
from airflow_elastic.planning.vectors import FloatArray, IntArray

__all__ = ["PoolSize", "clock", "size_pool"]


@dataclass(frozen=True, slots=True)
class PoolSize:
    """The decision about one pool."""

    view: PoolView
    need_now: int
    target: int
    """Nodes with capacity that it should have now."""
    keep: int
    """Nodes that are not worth giving back."""
    released: Released
    warm: int
    """Of the nodes that it will have, those that no task's pod takes: what somebody has to own."""
    action: SetNodes | None
    forecast: NodePoolForecast
    refusals: tuple[Refusal, ...]
    kept: tuple[Refusal, ...]


def clock(at: float) -> str:
    """Return a moment as people read it in a sentence: ``02:56:40 UTC``."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"{at:.0f} s"


def size_pool(
    snapshot: Snapshot,
    view: PoolView,
    demand: Demand,
    need: NeedOverTime,
    holds: Sequence[Hold],
    standing: Standing,
) -> PoolSize:
    """Decide about one pool."""
    now, scaling, name = snapshot.now, snapshot.settings.scaling, view.name
    mine = [hold for hold in holds if hold.node_pool == name]
    held = np.zeros(len(need.times), dtype=np.int64)
    for hold in mine:
        held += hold.extra(demand, need)
    asked = need.nodes[name] + held + need.overflow[name]
    demanded = _peak(need.times, asked, now + view.lead_seconds)
    target = min(max(demanded, view.pool.min_nodes), view.ceiling)
    keep = min(max(_peak(need.times, asked, now + view.window_seconds), target), view.ceiling)
    cooling = cooling_seconds(scaling, snapshot.memory.scale_out_at(name), now)
    because = _Because(demand, need, view, mine, now)
    uses = because.uses()
    released = Released()
    if view.is_managed and cooling is None:
        released = choose_release(view, view.have - max(keep, view.pool.min_nodes), standing, uses)
    action, warm = None, 0
    if view.is_managed:
        wanted = max(target, view.have) if view.can_grow else view.have
        # What is still coming beyond the maximum is not waited for, whoever asked for it.
        standing_most = max(view.ceiling, len(view.usable) + len(view.booting))
        wanted = min(wanted - released.count, standing_most)
        # Of the nodes that stand, those with a pod of ours or about to get one need nobody to hold them.
        warm = max(wanted - need.pods_now[name], 0)
        action = _action(view, wanted, warm, released, because, target, int(asked[0]))
    held_most = _peak(need.times, held, now + view.window_seconds)
    return PoolSize(
        view=view,
        need_now=int(asked[0]),
        target=target,
        keep=keep,
        released=released,
        warm=warm,
        action=action,
        forecast=NodePoolForecast(name, _steps(need.times, asked, view.ceiling), target),
        refusals=tuple(_refusals(view, demanded)),
        kept=tuple(kept_nodes(view, released, standing, uses, held_most, cooling, scaling)),
    )


def _peak(times: FloatArray, nodes: IntArray, until: float) -> int:
    return int(nodes[times <= until].max())


def _steps(times: FloatArray, nodes: IntArray, most: int) -> tuple[tuple[float, int], ...]:
    """Return the need as a step function without repeated values."""
    steps: list[tuple[float, int]] = []
    for at, count in zip(times.tolist(), np.minimum(nodes, most).tolist(), strict=True):
        if not steps or steps[-1][1] != count:
            steps.append((at, count))
    return tuple(steps)


def _action(
    view: PoolView, wanted: int, warm: int, released: Released, because: _Because, target: int, need_now: int
) -> SetNodes | None:
    """Return the order to the provider, or None when it has it already."""
    desired = view.state.desired_nodes
    if desired is None:
        nodes, was = wanted, view.have
        is_new = bool(released.nodes) or warm != view.placeholders
    else:
        was = desired
        if view.failure:
            # What was asked for and does not come stays asked for: the provider may recover before we look elsewhere.
            nodes = max(desired - released.count, wanted) if because.is_wanted() else wanted
        else:
            # The mechanism's number also counts nodes that stand there unusable, as far as it knows of them.
            nodes = wanted + min(max(desired - view.have, 0), view.unusable_standing)
        is_new = bool(released.nodes) or nodes != desired
    if not is_new:
        return None
    if released.count:
        what = released.nodes[0] if len(released.nodes) == 1 else f"{released.count} node(s)"
        reason = Reason.of(
            ReasonCode.RELEASE_NO_DOWNSTREAM, node=what, node_pool=view.name, hold_seconds=view.window_seconds
        )
    elif nodes > was or target > view.have:
        reason = because.growth(target, need_now)
    else:
        text = f"{view.name} keeps {nodes} node(s), {warm} of them warm without a task's pod"
        reason = Reason.of(ReasonCode.NOTE, text=text)
    return SetNodes(view.name, nodes, was, warm, reason, released.nodes)


def _refusals(view: PoolView, asked: int) -> list[Refusal]:
    about, out = view.name, []
    if asked > view.ceiling and view.is_managed:
        figures = {"node_pool": about, "maximum": view.pool.max_nodes, "wanted": asked + view.unusable_standing}
        out.append(Refusal(about, Reason.of(ReasonCode.AT_MAXIMUM, **figures)))
    elif asked > view.have and not view.is_managed:
        text = f"{about} has {view.have} node(s), {asked} would be needed; its provider is 'none': tasks wait for room"
        out.append(Refusal(about, Reason.of(ReasonCode.NOTE, text=text)))
    if view.failure and view.is_managed:
        out.append(Refusal(about, Reason.of(ReasonCode.PROVIDER_FAILED, node_pool=about, failure=view.failure)))
    return out


@dataclass(slots=True)
class _Because:
    """Finds the run or task that makes a pool grow or stay."""

    demand: Demand
    need: NeedOverTime
    view: PoolView
    holds: Sequence[Hold]
    now: float

    def _rows(self) -> IntArray:
        placed = [i for i, name in enumerate(self.need.pool_of_item) if name == self.view.name]
        return np.array(placed, dtype=np.int64)

    def is_wanted(self) -> bool:
        """Tell whether anything that may run here still waits for a place."""
        free = self.demand.kind[self.demand.node < 0]
        return any(self.view.name in self.demand.kind_pools[kind] for kind in np.unique(free).tolist())

    def uses(self) -> Uses:
        """Return what will use the pool's standing nodes within its window."""
        until = self.now + self.view.window_seconds
        by_node = {}
        for node in (*self.view.usable, *self.view.booting):
            at, row = self.need.next_use.get(node.name, (until + 1.0, -1))
            if at <= until:
                by_node[node.name] = (max(at - self.now, 0.0), self.demand.label(row))
        soon = [hold for hold in self.holds if hold.start <= until and hold.until > self.now]
        if not soon:
            return Uses(by_node)
        first = min(soon, key=lambda hold: (hold.start, hold.owner))
        run = self.demand.runs[first.owner].run
        return Uses(by_node, (max(first.start - self.now, 0.0), f"{run.dag_id} run {run.run_id} (annotation)"))

    def growth(self, target: int, need_now: int) -> Reason:
        """Return why the pool is to have ``target`` nodes."""
        view, demand = self.view, self.demand
        if target <= view.pool.min_nodes:
            return Reason.of(ReasonCode.KEEP_MINIMUM, node_pool=view.name, nodes=view.pool.min_nodes)
        rows = self._rows()
        rows = rows[(demand.node[rows] < 0) & (demand.starts[0, rows] <= self.now + view.lead_seconds)]
        waiting = int(demand.is_now[rows].sum())
        if waiting and need_now >= target:
            return Reason.of(ReasonCode.TASKS_WAIT, tasks=waiting, nodes=target, node_pool=view.name, have=view.have)
        owned = rows[demand.owner[rows] != NO_OWNER]
        coming = [i for i in owned.tolist() if demand.runs[int(demand.owner[i])].run.phase is not RunPhase.ACTIVE]
        if coming:
            first = min(coming, key=lambda i: (float(demand.starts[0, i]), i))
            owner = int(demand.owner[first])
            run = demand.runs[owner].run
            rows_of_run = {int(self.need.row_of_item[i]) for i in coming if int(demand.owner[i]) == owner}
            return Reason.of(
                ReasonCode.PREWARM,
                dag_id=run.dag_id,
                run_id=run.run_id,
                nodes=len(rows_of_run),
                node_pool=view.name,
                needed=clock(float(demand.starts[0, first])),
                boot_seconds=view.boot_seconds,
            )
        if not len(rows) and self.holds:
            hold = min(self.holds, key=lambda each: (each.start, each.owner))
            run = demand.runs[hold.owner].run
            return Reason.of(
                ReasonCode.ANNOTATION, dag_id=run.dag_id, run_id=run.run_id, nodes=hold.nodes, node_pool=view.name
            )
        return Reason.of(
            ReasonCode.MORE_FOR_RUN,
            nodes=target,
            node_pool=view.name,
            lead_seconds=view.lead_seconds,
            have=view.have,
        )
