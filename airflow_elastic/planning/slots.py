"""Slots of Airflow pools: what really fits on usable nodes, less what Airflow does not count.

For a class alone on its node pools: Σ over usable nodes of floor(min over resources of (allocatable − foreign − pods of
other classes) / slot shape); its own pods are part of its slots. One slot also takes one pod of the node's pod limit.

Where classes share a node pool, the free room of each node is given out once: in the file's order every class but the
last one takes slots up to its present demand (what Airflow counts as occupied or holds back as scheduled) and the last
one takes what is left. The room granted to a class is taken off before the next one counts, so the sum never exceeds
what fits. A class without demand holds no free slot there; it gets them in the tick in which its task is scheduled.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from airflow_elastic.model.demand import TaskInstance, TaskKey, TaskSpec, TaskState
from airflow_elastic.model.plan import SetSlots
from airflow_elastic.model.reasons import Reason, ReasonCode
from airflow_elastic.model.snapshot import AirflowPool, Node, Snapshot
from airflow_elastic.planning.vectors import FloatArray, IntArray, ResourceIndex, one_pod

__all__ = ["SlotPlan", "plan_slots"]

_EPSILON = 1e-6


@dataclass(frozen=True, slots=True)
class SlotPlan:
    """The slots of every Airflow pool that a class names."""

    actions: tuple[SetSlots, ...]
    usable: tuple[tuple[str, int], ...]
    """(Airflow pool, slots that fit on usable nodes as they stand now)"""


def plan_slots(snapshot: Snapshot, releasing: Collection[str], index: ResourceIndex) -> SlotPlan:
    """Return the slots for a snapshot in which the nodes ``releasing`` are about to go."""
    usable = [node for node in snapshot.nodes if node.usable and not node.is_releasing]
    staying = [node for node in usable if node.name not in releasing]
    fits_now = _fits(snapshot, usable, index)
    fits = _fits(snapshot, staying, index) if releasing else fits_now
    pools = {pool.name: pool for pool in snapshot.airflow_pools}
    tasks = _Tasks.of(snapshot)
    uncounted = _uncounted(snapshot, pools, tasks)
    finishing = _finishing(snapshot, tasks)
    actions = []
    for name, fit in fits.items():
        pool = pools.get(name, AirflowPool(name, 0))
        slots = max(fit - uncounted.get(name, 0), 0)
        node_names = {
            pool_name
            for each in snapshot.settings.classes
            if each.airflow_pool == name
            for pool_name in each.node_pools
        }
        count = sum(node.node_pool in node_names for node in staying)
        gone = sum(node.node_pool in node_names for node in usable) - count
        if gone and fit < fits_now[name]:
            reason = Reason.of(ReasonCode.SLOTS_DOWN_BEFORE_NODES, slots=slots, airflow_pool=name, releasing=gone)
        else:
            reason = Reason.of(ReasonCode.SLOTS_FOLLOW_NODES, slots=slots, airflow_pool=name, nodes=count)
        waiting = finishing.get(name, 0)
        if waiting and slots < pool.occupied + waiting:
            slots = pool.occupied + waiting
            reason = Reason.of(ReasonCode.SLOTS_FOR_FINISHED, slots=slots, airflow_pool=name, finishing=waiting)
        if name not in pools or pool.slots != slots:
            actions.append(SetSlots(name, slots, pool.slots, reason))
    return SlotPlan(tuple(actions), tuple(fits_now.items()))


def _fits(snapshot: Snapshot, nodes: Sequence[Node], index: ResourceIndex) -> dict[str, int]:
    """Return how many slots of each Airflow pool fit on the given nodes."""
    settings = snapshot.settings
    row_of = {node.name: i for i, node in enumerate(nodes)}
    free = np.array([index.room(n.allocatable) - index.amounts(n.foreign) for n in nodes], dtype=np.float64)
    free = free.reshape(len(nodes), len(index.names))
    own: dict[str, FloatArray] = {each.name: np.zeros_like(free) for each in settings.classes}
    for pod in snapshot.pods:
        row = row_of.get(pod.node, -1) if pod.node and pod.takes_room else -1
        if row >= 0:
            amounts = index.amounts(one_pod(pod.requests))
            free[row] -= amounts
            owner = settings.capacity_class(pod.capacity_class)
            if owner is not None:
                own[owner.name][row] += amounts
    last_of = {pool.name: each.name for pool in settings.node_pools for each in settings.classes_on(pool.name)}
    pool_of = [node.node_pool for node in nodes]
    demand = {pool.name: pool.occupied + pool.scheduled for pool in snapshot.airflow_pools}
    fits: dict[str, int] = {each.airflow_pool: 0 for each in settings.classes}
    for each in settings.classes:
        on = np.array([name in each.node_pools for name in pool_of], dtype=bool)
        is_last = np.array([last_of.get(name) == each.name for name in pool_of], dtype=bool)
        shape = index.amounts(one_pod(each.slot_shape))
        granted = _grant(free, own[each.name], shape, on, is_last, demand.get(each.airflow_pool, 0))
        count = int(granted.sum())
        fits[each.airflow_pool] += count
        demand[each.airflow_pool] = max(demand.get(each.airflow_pool, 0) - count, 0)
        # What was granted beyond its own pods is not free for the classes after it.
        free -= np.maximum(granted[:, None] * shape - own[each.name], 0.0)
    return fits


def _grant(
    free: FloatArray, own: FloatArray, shape: FloatArray, on: IntArray, is_last: IntArray, demand: int
) -> IntArray:
    """Return the slots of one class by node: all that fit where it is the last, up to its demand elsewhere."""
    named = shape > 0
    room = np.maximum(free + own, 0.0)[:, named]
    full = np.floor((room + _EPSILON) / shape[named]).min(axis=1) if len(free) else np.zeros(0)
    # Pods of the class on nodes of pools that are not its own take room there, but are no slots.
    full = np.where(on, full, 0).astype(np.int64)
    running = np.ceil((own[:, named] - _EPSILON) / shape[named]).max(axis=1) if len(free) else np.zeros(0)
    base = np.minimum(full, running.astype(np.int64))
    granted = np.where(is_last, full, base)
    left = max(demand - int(granted.sum()), 0)
    extra = full - granted
    before = np.cumsum(extra) - extra
    return np.asarray(granted + np.clip(left - before, 0, extra))


@dataclass(frozen=True, slots=True)
class _Tasks:
    """Of the task instances that have a pod or are on their way back: spec and instance."""

    by_key: dict[TaskKey, tuple[TaskSpec, TaskInstance]]

    @classmethod
    def of(cls, snapshot: Snapshot) -> _Tasks:
        owners = {pod.owner for pod in snapshot.pods if pod.owner is not None and pod.takes_room}
        owning = {(owner.dag_id, owner.run_id) for owner in owners}
        found: dict[TaskKey, tuple[TaskSpec, TaskInstance]] = {}
        for run in snapshot.runs:
            has_pods = (run.dag_id, run.run_id) in owning
            specs: dict[str, TaskSpec] | None = None
            for each in run.tasks:
                key = (
                    TaskKey(run.dag_id, run.run_id, each.task_id, each.map_index) if has_pods or each.resumes else None
                )
                if key is not None and (each.resumes or key in owners):
                    specs = specs if specs is not None else {spec.task_id: spec for spec in run.shape.tasks}
                    if each.task_id in specs:
                        found[key] = (specs[each.task_id], each)
        return cls(found)


def _uncounted(snapshot: Snapshot, pools: Mapping[str, AirflowPool], tasks: _Tasks) -> dict[str, int]:
    """Return the slots of live pods on usable nodes (or waiting) whose task Airflow does not count now."""
    settings = snapshot.settings
    unusable = {node.name for node in snapshot.nodes if not node.usable or node.is_releasing}
    result: dict[str, int] = defaultdict(int)
    for pod in snapshot.pods:
        capacity_class = settings.capacity_class(pod.capacity_class)
        if not pod.takes_room or pod.node in unusable or capacity_class is None:
            continue
        known = tasks.by_key.get(pod.owner) if pod.owner else None
        pool = pools.get(capacity_class.airflow_pool)
        counted = {TaskState.QUEUED, TaskState.RUNNING}
        if pool is None or pool.include_deferred:
            counted.add(TaskState.DEFERRED)
        if known is None:
            result[capacity_class.airflow_pool] += pod.requests.slots_of(capacity_class.slot_shape)
        elif known[1].state not in counted:
            result[capacity_class.airflow_pool] += known[0].pool_slots
    return result


def _finishing(snapshot: Snapshot, tasks: _Tasks) -> dict[str, int]:
    """Return the slots of resumed tasks that wait, uncounted, for a slot to close their ended pod in."""
    live = {pod.owner for pod in snapshot.pods if pod.owner and pod.takes_room}
    result: dict[str, int] = defaultdict(int)
    for key, (spec, each) in tasks.by_key.items():
        if each.resumes and each.state is TaskState.SCHEDULED and key not in live:
            result[spec.pool] += max(spec.pool_slots, 1)
    return result
