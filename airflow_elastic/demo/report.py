"""The independent reporter: every figure from the event log, the slot samples and Airflow's tables only.

It shares no code with planner, controller or Kubernetes adapter (a test says so), so it cannot repeat their mistakes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from airflow_elastic.demo.cluster_history import ClusterHistory, NodeLife, PodLife, TaskId
from airflow_elastic.demo.measurement import MeasuredClass, Measurement, RunRow, TaskRow
from airflow_elastic.demo.steps import Steps, integral

__all__ = ["COLD_SECONDS", "figures", "percentile", "usable_slots", "usable_slots_at"]

COLD_SECONDS = 5.0
"""A task is cold when its pod stayed unschedulable for longer than this."""


def figures(measured: Measurement) -> dict[str, Any]:
    """Return the report: the figures by name, then ``detail``.

    - ``runs``, ``tasks``, ``failed_tasks``: finished scheduled runs and their task instances.
    - ``cold_tasks``: task instances with a pod that stayed unschedulable for more than 5 s.
    - ``first_task_wait_seconds_p95``: from the start of a run to its first tasks' pods running, over the tasks without
      upstream of all finished runs.
    - ``node_seconds``: as billed, from the launch request to the end of the machine (or of the measurement).
    - ``node_seconds_explained``: of these, in each node pool and at each moment, as many nodes as the largest of: nodes
      with a task's pod bound to them; nodes held by reservations in force, or by placeholder pods, for runs; min_nodes.
    - ``phantom_slot_seconds``: ∫ max(0, slots − usable slots) dt over the classes' Airflow pools.
    - ``slots_end``, ``nodes_end``, ``placeholders_end``: at the end, over all pools.
    - ``prewarmed_runs``: runs all of whose first tasks ran on nodes that were Ready before the run started.
    """
    history, start, end = measured.history, measured.started_at, measured.ended_at
    runs = sorted((run for run in measured.runs if _counts(run)), key=lambda run: (run.run_after, run.dag_id))
    pods = _pods_by_task(history)
    of_run: dict[tuple[str, str], list[TaskRow]] = defaultdict(list)
    for task in measured.tasks:
        if task.state != "removed":
            of_run[task.dag_id, task.run_id].append(task)

    details, waits = [], []
    for run in runs:
        detail = _run_detail(run, of_run[run.dag_id, run.run_id], measured, pods)
        waits.extend(detail["first_task_wait_seconds"])
        details.append(detail)
    slots = _slot_figures(measured)
    nodes = {pool: _node_figures(pool, measured) for pool in _node_pools(measured)}
    placeholders = [pod for pod in history.pods.values() if pod.is_placeholder and pod.gone_at > end]
    return {
        "runs": len(runs),
        "tasks": sum(detail["tasks"] for detail in details),
        "failed_tasks": sum(detail["failed_tasks"] for detail in details),
        "cold_tasks": sum(len(detail["cold_tasks"]) for detail in details),
        "first_task_wait_seconds_p95": _rounded(percentile(waits, 0.95)),
        "node_seconds": round(sum(each["node_seconds"] for each in nodes.values()), 1),
        "node_seconds_explained": round(sum(each["explained"] for each in nodes.values()), 1),
        "phantom_slot_seconds": round(sum(each["phantom_slot_seconds"] for each in slots.values()), 2),
        "slots_end": sum(each["slots_end"] for each in slots.values()),
        "nodes_end": sum(each["nodes_end"] for each in nodes.values()),
        "placeholders_end": len(placeholders),
        "prewarmed_runs": sum(detail["prewarmed"] for detail in details),
        "detail": {
            "seconds": round(end - start, 1),
            "slot_seconds": round(sum(each["slot_seconds"] for each in slots.values()), 1),
            "airflow_pools": slots,
            "node_pools": nodes,
            "runs": details,
        },
    }


def percentile(values: Iterable[float], share: float) -> float | None:
    """Return the nearest-rank percentile; None where there are no values."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def usable_slots(measured: Measurement, each: MeasuredClass) -> Steps:
    """Return the slots of a class that fit on usable nodes: per node the whole slots in allocatable − foreign pods."""
    nodes = [node for node in measured.history.nodes.values() if node.pool in each.node_pools]
    foreign = _foreign_pods(measured.history)
    moments = {moment for node in nodes for interval in node.usable for moment in interval if moment < math.inf}
    moments |= {moment for taken in foreign.values() for one in taken for moment in one[:2] if moment < math.inf}
    return Steps(
        (moment, sum(_slots_on(node, foreign[node.name], each, moment) for node in nodes)) for moment in moments
    )


def usable_slots_at(history: ClusterHistory, each: MeasuredClass, moment: float) -> int:
    """Return what ``usable_slots`` has at one moment, without working out the others."""
    foreign = _foreign_pods(history)
    return sum(
        _slots_on(node, foreign[node.name], each, moment)
        for node in history.nodes.values()
        if node.pool in each.node_pools and node.ended_at > moment
    )


def _foreign_pods(history: ClusterHistory) -> dict[str, list[tuple[float, float, PodLife]]]:
    """Return by node what is neither a task's pod nor a placeholder: from, until, pod."""
    foreign: dict[str, list[tuple[float, float, PodLife]]] = defaultdict(list)
    for pod in history.pods.values():
        if pod.task is None and not pod.is_placeholder and (occupied := pod.occupies):
            foreign[pod.node].append((*occupied, pod))
    return foreign


def _slots_on(
    node: NodeLife, foreign: Sequence[tuple[float, float, PodLife]], each: MeasuredClass, moment: float
) -> int:
    if not any(since <= moment < until for since, until in node.usable):
        return 0
    room = dict(node.allocatable)
    for since, until, pod in foreign:
        if since <= moment < until:
            for name, amount in pod.requests.items():
                room[name] = room.get(name, 0) - amount
    shape = {"pods": 1, **each.slot_shape}  # each slot is at least one pod
    return max(0, min(room.get(name, 0) // amount for name, amount in shape.items() if amount > 0))


def _counts(run: RunRow) -> bool:
    return run.run_type == "scheduled" and run.is_finished


def _pods_by_task(history: ClusterHistory) -> dict[TaskId, list[PodLife]]:
    found: dict[TaskId, list[PodLife]] = defaultdict(list)
    for pod in history.pods.values():
        if (task := pod.task) is not None:
            found[task].append(pod)
    return found


def _run_detail(
    run: RunRow, tasks: Sequence[TaskRow], measured: Measurement, pods: dict[TaskId, list[PodLife]]
) -> dict[str, Any]:
    started_at = run.started_at if run.started_at is not None else run.run_after
    cold, waits, warm_firsts, firsts = [], [], 0, 0
    for task in tasks:
        own = pods.get((task.dag_id, task.run_id, task.task_id, task.map_index), [])
        is_cold = any(pod.unschedulable_seconds(measured.ended_at) > COLD_SECONDS for pod in own)
        label = task.task_id if task.map_index < 0 else f"{task.task_id}[{task.map_index}]"
        if is_cold:
            cold.append(label)
        if task.task_id not in measured.first_tasks.get(run.dag_id, frozenset()):
            continue
        firsts += 1
        if running := [pod.running_at for pod in own if pod.running_at is not None]:
            waits.append(round(min(running) - started_at, 2))
        node = measured.history.nodes.get(own[0].node) if own else None
        if node is not None and node.ready_at is not None and node.ready_at <= started_at and not is_cold:
            warm_firsts += 1
    return {
        "dag_id": run.dag_id,
        "run_id": run.run_id,
        "state": run.state,
        "seconds": _rounded(run.ended_at - started_at if run.ended_at is not None else None),
        "tasks": len(tasks),
        "failed_tasks": sum(task.failed for task in tasks),
        "retried_tasks": sum(task.try_number > 1 for task in tasks),
        "cold_tasks": cold,
        "first_task_wait_seconds": waits,
        "prewarmed": firsts > 0 and warm_firsts == firsts,
    }


def _slot_figures(measured: Measurement) -> dict[str, dict[str, Any]]:
    start, end = measured.started_at, measured.ended_at
    found = {}
    for each in measured.classes:
        samples = [
            (time, slots[each.airflow_pool]) for time, slots in measured.slot_samples if each.airflow_pool in slots
        ]
        slots = Steps((time, float(value)) for time, value in samples)
        usable = usable_slots(measured, each)
        found[each.airflow_pool] = {
            "slots_end": int(slots.at(end)),
            "usable_slots_end": int(usable.at(end)),
            "slot_seconds": round(integral(lambda value: value, [slots], start, end), 1),
            "usable_slot_seconds": round(integral(lambda value: value, [usable], start, end), 1),
            "phantom_slot_seconds": round(
                integral(lambda value, fits: max(0.0, value - fits), [slots, usable], start, end), 2
            ),
        }
    return found


def _node_pools(measured: Measurement) -> list[str]:
    return sorted({*measured.min_nodes, *(node.pool for node in measured.history.nodes.values())})


def _node_figures(pool: str, measured: Measurement) -> dict[str, Any]:
    start, end = measured.started_at, measured.ended_at
    nodes = [node for node in measured.history.nodes.values() if node.pool == pool]
    names = {node.name for node in nodes}
    billed = Steps.counting((node.requested_at, node.ended_at) for node in nodes)
    busy = Steps.counting(
        interval for name in names for interval in _merged(_occupied(measured.history, name, placeholders=False))
    )
    held = Steps.counting(
        interval for name in names for interval in _merged(_occupied(measured.history, name, placeholders=True))
    )
    reserved = Steps((time, float(nodes_held.get(pool, 0))) for time, nodes_held in measured.reserved_samples)
    minimum = measured.min_nodes.get(pool, 0)
    return {
        "node_seconds": round(integral(lambda count: count, [billed], start, end), 1),
        "explained": round(
            integral(
                lambda count, work, hold, claim: min(count, max(work, hold, claim, minimum)),
                [billed, busy, held, reserved], start, end,
            ), 1,
        ),
        "busy_node_seconds": round(integral(lambda count: count, [busy], start, end), 1),
        "launched": len(nodes),
        "nodes_peak": int(max((billed.at(time) for time in [start, *billed.times]), default=0)),
        "nodes_end": int(billed.at(end)),
    }  # fmt: skip


def _occupied(history: ClusterHistory, node: str, *, placeholders: bool) -> list[tuple[float, float]]:
    return [
        occupied
        for pod in history.pods.values()
        if pod.node == node
        and (pod.task is not None or (placeholders and pod.is_placeholder))
        and (occupied := pod.occupies) is not None
    ]


def _merged(intervals: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the union of intervals as intervals that do not overlap."""
    merged: list[tuple[float, float]] = []
    for since, until in sorted(intervals):
        if merged and since <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], until))
        else:
            merged.append((since, until))
    return merged


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
