"""Demand: all runs and pods as one table of intervals, each of which wants a place on a node.

Counted are the pods that exist (bound ones pinned to their node), the tasks that are ready but held back, and the
tasks that are expected to become ready within the planner's window. Of one DAG, only as many runs count at once as
``max_active_runs``; the others start when earlier ones end.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from airflow_elastic.model.demand import Run, RunPhase, TaskInstance, TaskState
from airflow_elastic.model.reservation import ReservationState
from airflow_elastic.model.snapshot import Pod, Snapshot
from airflow_elastic.planning.pools import PoolView, is_live
from airflow_elastic.planning.progress import run_progress
from airflow_elastic.planning.shapes import Intervals, Kind, ShapeFacts, intervals_of, shape_facts
from airflow_elastic.planning.skyline import GroupKind, Skyline, project
from airflow_elastic.planning.validate import Feasibility
from airflow_elastic.planning.vectors import FloatArray, IntArray, one_pod

__all__ = ["NO_OWNER", "Demand", "RunDemand", "collect_demand", "expired_keys", "first_pool"]

NO_OWNER = -1
_DELETING_SECONDS = 30.0
_UNKNOWN_SECONDS = 86400.0


@dataclass(slots=True)
class RunDemand:
    """One run's remaining needs. Times of ``intervals`` are relative to ``base``."""

    run: Run
    facts: ShapeFacts
    base: float
    intervals: Intervals
    ends_at: float
    bound: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Names of the nodes where pods of it take room, by node pool."""

    @property
    def key(self) -> tuple[str, str]:
        """Return (dag id, run id)."""
        return self.run.dag_id, self.run.run_id


@dataclass(slots=True)
class Demand:
    """The table: one row for each pod or task instance. ``starts`` and ``ends`` are early, median and late times."""

    kinds: list[Kind]
    kind_pools: list[tuple[str, ...]]
    """Pools that can hold each kind."""
    expired: frozenset[tuple[str, str, str]]
    """(dag id, run id, node pool) whose longest hold is over: what is only forecast there holds nothing."""
    runs: list[RunDemand]
    kind: IntArray
    owner: IntArray
    """Index into ``runs``; ``NO_OWNER`` for pods whose run is not known."""
    spec: IntArray
    """Index of the task in its run's shape; −1 unknown."""
    node: IntArray
    """Index into the snapshot's nodes of a bound pod; −1: free to be placed."""
    is_now: IntArray
    is_pod: IntArray
    starts: FloatArray
    ends: FloatArray

    def label(self, row: int) -> str:
        """Return ``dag.task`` of a row for a sentence."""
        owner, spec = int(self.owner[row]), int(self.spec[row])
        if owner == NO_OWNER:
            return "a pod of an unknown run"
        run = self.runs[owner].run
        return f"{run.dag_id}.{run.shape.tasks[spec].task_id}" if spec >= 0 else run.dag_id


def first_pool(node_pools: tuple[str, ...], views: Mapping[str, PoolView]) -> str:
    """Return the pool where a pod of these pools is planned first: the first that has or can bring a node."""
    known = [name for name in node_pools if name in views]
    return next((name for name in known if views[name].reachable > 0), known[0] if known else "")


def bound_nodes(snapshot: Snapshot) -> dict[tuple[str, str], dict[str, set[str]]]:
    """Return the nodes, lost ones apart, where pods of each run (dag id, run id) take room, by node pool."""
    pool_of = {node.name: node.node_pool for node in snapshot.nodes if not node.is_lost}
    found: dict[tuple[str, str], dict[str, set[str]]] = {}
    for pod in snapshot.pods:
        if pod.owner is not None and pod.takes_room and pod.node in pool_of:
            of_run = found.setdefault((pod.owner.dag_id, pod.owner.run_id), {})
            of_run.setdefault(pool_of[pod.node], set()).add(pod.node)
    return found


def expired_keys(
    snapshot: Snapshot, bound: Mapping[tuple[str, str], Mapping[str, Collection[str]]]
) -> frozenset[tuple[str, str, str]]:
    """Return (dag, run, node pool) of reservations whose longest hold is over, in this very plan too, without use."""
    over = ReservationState.RELEASED, ReservationState.FAILED
    return frozenset(
        (each.dag_id, each.run_id, each.node_pool)
        for each in snapshot.reservations
        if (each.state is ReservationState.EXPIRED or (each.state not in over and each.expires_at <= snapshot.now))
        and not bound.get((each.dag_id, each.run_id), {}).get(each.node_pool)
    )


class _Table:
    """Collects rows as chunks of arrays."""

    def __init__(self, feasibility: Feasibility) -> None:
        self.feasibility = feasibility
        self.kinds: dict[Kind, int] = {}
        self.kind_pools: list[tuple[str, ...]] = []
        self.columns: list[list[IntArray]] = [[] for _ in range(6)]
        self.starts: list[FloatArray] = []
        self.ends: list[FloatArray] = []
        self.single: list[tuple[int, int, int, int, int, int]] = []
        self.single_times: list[tuple[FloatArray, FloatArray]] = []

    def kind_id(self, kind: Kind) -> int:
        found = self.kinds.get(kind)
        if found is None:
            found = self.kinds[kind] = len(self.kinds)
            self.kind_pools.append(self.feasibility.pools_for(kind))
        return found

    def add_rows(
        self, kind: IntArray, owner: int, spec: IntArray, is_now: IntArray, starts: FloatArray, ends: FloatArray
    ) -> None:
        size = len(kind)
        full = np.full(size, owner, dtype=np.int64)
        free = np.full(size, -1, dtype=np.int64)
        none = np.zeros(size, dtype=np.int64)
        for column, values in zip(self.columns, (kind, full, spec, free, is_now, none), strict=True):
            column.append(values)
        self.starts.append(starts)
        self.ends.append(ends)

    def add_pod(
        self, kind: int, owner: int, spec: int, node: int, exists: bool, starts: FloatArray, ends: FloatArray
    ) -> None:
        self.single.append((kind, owner, spec, node, 1, int(exists)))
        self.single_times.append((starts, ends))

    def build(self, runs: list[RunDemand], expired: frozenset[tuple[str, str, str]]) -> Demand:
        singles = np.array(self.single, dtype=np.int64).reshape(-1, 6)
        columns = [np.concatenate([*chunks, singles[:, i]]) for i, chunks in enumerate(self.columns)]
        times = [
            np.concatenate([*chunks, np.array([pair[i] for pair in self.single_times]).reshape(-1, 3).T], axis=1)
            for i, chunks in enumerate((self.starts, self.ends))
        ]
        return Demand(list(self.kinds), self.kind_pools, expired, runs, *columns, *times)


class _Collector:
    """Walks through pods and runs of one snapshot."""

    def __init__(self, snapshot: Snapshot, views: Mapping[str, PoolView], feasibility: Feasibility) -> None:
        self.snapshot = snapshot
        self.settings = snapshot.settings
        self.now = snapshot.now
        self.horizon = self.now + max((view.window_seconds for view in views.values()), default=0.0)
        self.table = _Table(feasibility)
        self.runs: list[RunDemand] = []
        self.node_index = {node.name: i for i, node in enumerate(snapshot.nodes)}
        self.bound = bound_nodes(snapshot)
        self.expired = expired_keys(snapshot, self.bound)
        self.expired_runs = {(dag_id, run_id) for dag_id, run_id, _ in self.expired}
        self.pods: dict[tuple[str, str], list[Pod]] = defaultdict(list)
        self.loose: list[Pod] = []
        known = {(run.dag_id, run.run_id) for run in snapshot.runs}
        for pod in snapshot.pods:
            if pod.placeholder_of:
                continue
            owner = (pod.owner.dag_id, pod.owner.run_id) if pod.owner else ("", "")
            if owner in known:
                self.pods[owner].append(pod)
            else:
                self.loose.append(pod)

    def collect(self) -> Demand:
        by_dag: dict[str, list[Run]] = defaultdict(list)
        for run in self.snapshot.runs:
            by_dag[run.dag_id].append(self._as_its_pods_show(run))
        for runs in by_dag.values():
            self._dag(sorted(runs, key=lambda run: (run.starts_at, run.run_id)))
        for pod in self.loose:
            self._loose_pod(pod, NO_OWNER)
        return self.table.build(self.runs, self.expired)

    def _as_its_pods_show(self, run: Run) -> Run:
        """Return a run that has pods as under way, also where the look at Airflow is older than its start.

        Otherwise a first pod and the forecast task that it belongs to would both ask for a node.
        """
        if run.phase is RunPhase.ACTIVE or run.tasks:
            return run
        owners = {pod.owner for pod in self.pods.get((run.dag_id, run.run_id), ()) if pod.owner is not None}
        if not owners:
            return run
        started = tuple(TaskInstance(each.task_id, each.map_index, TaskState.RUNNING) for each in sorted(owners))
        return replace(run, phase=RunPhase.ACTIVE, tasks=started)

    def _dag(self, runs: list[Run]) -> None:
        """Count a DAG's runs: active ones as they stand, the others as its limit of active runs lets them start."""
        ends = [self._active(run) for run in runs if run.phase is RunPhase.ACTIVE]
        heapq.heapify(ends)
        waiting = [run for run in runs if run.phase is RunPhase.QUEUED]
        waiting += [run for run in runs if run.phase is RunPhase.COMING]
        for run in waiting:
            if run.shape.is_paused:
                continue
            start = max(run.starts_at, self.now) if run.phase is RunPhase.COMING else self.now
            while len(ends) >= max(run.shape.max_active_runs, 1):
                start = max(start, heapq.heappop(ends))
            facts = shape_facts(run.shape, self.settings)
            heapq.heappush(ends, start + facts.fresh.ends_at)
            each = RunDemand(run, facts, start, facts.fresh_intervals, start + facts.fresh.ends_at)
            self._add_run(each, facts.fresh_intervals)
            for pod in self.pods.get(each.key, ()):
                self._loose_pod(pod, len(self.runs) - 1)

    def _active(self, run: Run) -> float:
        facts = shape_facts(run.shape, self.settings)
        instances: dict[str, list[TaskInstance]] = defaultdict(list)
        for instance in run.tasks:
            instances[instance.task_id].append(instance)
        pods = self.pods.get((run.dag_id, run.run_id), [])
        progress, live = run_progress(run.shape, instances, pods, self.now)
        skyline = project(run.shape, self.now, progress)
        if run.shape.is_paused:  # Airflow starts no task of a paused DAG; what runs goes on
            kept = tuple(group for group in skyline.groups if group.kind is GroupKind.RUNNING)
            skyline = Skyline(kept, skyline.ends_at, skyline.last_need_at)
        intervals = intervals_of(skyline, facts.early_factors, self.now)
        each = RunDemand(run, facts, self.now, intervals, skyline.ends_at)
        self._add_run(each, intervals, live)
        attached = {id(pod) for some in live.values() for pod in some}
        for pod in pods:
            if id(pod) not in attached:
                self._loose_pod(pod, len(self.runs) - 1)
        return skyline.ends_at

    def _add_run(
        self, each: RunDemand, intervals: Intervals, live: Mapping[tuple[str, int], list[Pod]] | None = None
    ) -> None:
        owner = len(self.runs)
        self.runs.append(each)
        each.bound = self.bound.get(each.key, each.bound)
        if each.base + intervals.first > self.horizon:
            return
        facts = each.facts
        to_global = [self.table.kind_id(kind) for kind in facts.kinds]
        possible = [bool(self.table.kind_pools[i]) for i in to_global]
        kinds = np.array([*to_global, -1], dtype=np.int64)[facts.kind_of_spec[intervals.spec]]
        chosen = np.array([*possible, False])[facts.kind_of_spec[intervals.spec]]
        chosen &= each.base + intervals.starts[0] <= self.horizon
        if each.key in self.expired_runs:
            held = np.array([*(self._has_expired(each, i) for i in to_global), False])
            chosen &= (intervals.is_now > 0) | ~held[facts.kind_of_spec[intervals.spec]]
        for j in np.flatnonzero(intervals.map_index > -2).tolist() if live else ():
            task_id = facts.shape.tasks[int(intervals.spec[j])].task_id
            pods = (live or {}).get((task_id, int(intervals.map_index[j])), [])
            for pod in pods:
                chosen[j] = False
                self._pod(pod, each, owner, int(intervals.spec[j]), intervals.starts[:, j], intervals.ends[:, j])
        rows = np.flatnonzero(chosen)
        if len(rows):
            rows = np.repeat(rows, intervals.count[rows])
            self.table.add_rows(
                kinds[rows],
                owner,
                intervals.spec[rows],
                intervals.is_now[rows].astype(np.int64),
                each.base + intervals.starts[:, rows],
                each.base + intervals.ends[:, rows],
            )

    def _has_expired(self, each: RunDemand, kind: int) -> bool:
        return any((*each.key, name) in self.expired for name in self.table.kind_pools[kind])

    def _pod(
        self, pod: Pod, each: RunDemand | None, owner: int, spec: int, starts: FloatArray, ends: FloatArray
    ) -> None:
        base = each.base if each else self.now
        node = self.node_index.get(pod.node, -1) if pod.node else -1
        if pod.node and node < 0:
            return  # bound outside the declared pools: nothing of ours to plan
        kind = self.table.kind_id(self._kind_of_pod(pod))
        is_lost = node >= 0 and self.snapshot.nodes[node].is_lost
        if is_lost:
            node = -1  # its work will have to run again elsewhere, and no pod of it waits yet that would bring a node
        if node < 0 and not self.table.kind_pools[kind]:
            return
        self.table.add_pod(kind, owner, spec, node, not is_lost, base + starts, base + ends)

    def _kind_of_pod(self, pod: Pod) -> Kind:
        capacity_class = self.settings.capacity_class(pod.capacity_class)
        pools = pod.node_pools or (capacity_class.node_pools if capacity_class else ())
        return Kind(capacity_class.name if capacity_class else pod.capacity_class, pools, one_pod(pod.requests))

    def _loose_pod(self, pod: Pod, owner: int) -> None:
        """Count a pod that no started task instance accounts for: it keeps its room until it is gone."""
        if not pod.takes_room or (not pod.node and (pod.is_deleting or owner != NO_OWNER)):
            return  # nobody waits for an unbound pod whose task has ended
        seconds = _DELETING_SECONDS if pod.is_deleting else _UNKNOWN_SECONDS
        if not pod.node and is_live(pod):
            seconds = max(self.settings.scaling.default_task_seconds, 1.0)
        each = self.runs[owner] if owner != NO_OWNER else None
        offset = self.now - (each.base if each else self.now)
        self._pod(pod, each, owner, -1, np.full(3, offset), np.full(3, offset + seconds))


def collect_demand(snapshot: Snapshot, views: Mapping[str, PoolView], feasibility: Feasibility) -> Demand:
    """Return the table of everything that wants a node within the widest window of any pool."""
    return _Collector(snapshot, views, feasibility).collect()
