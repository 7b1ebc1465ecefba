"""The document that the controller publishes after each plan: all that the page and the commands show.

It is plain JSON (dicts, lists, strings, numbers, booleans, None), so that surfaces need neither planner nor cluster.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, fields
from typing import Any

from airflow_elastic.model.plan import Plan, RunForecast, SetNodes, SetSlots
from airflow_elastic.model.reservation import Reservation
from airflow_elastic.model.snapshot import Snapshot
from airflow_elastic.model.status_tasks import task_entries

__all__ = ["STATUS_VERSION", "ControllerInfo", "status_document"]

STATUS_VERSION = 1

# Thousands of these are in a document, made anew every second: dataclasses.asdict would copy each field deeply.
_RUN = tuple(each.name for each in fields(RunForecast))
_RESERVATION = tuple(each.name for each in fields(Reservation))


@dataclass(frozen=True, slots=True)
class ControllerInfo:
    """Who wrote the document."""

    holder: str
    """host:pid of the leader."""
    started_at: float
    configuration_error: str = ""
    """The broken capacity file's complaint while the last good one is in force."""
    plan_seconds: float = 0.0


def status_document(snapshot: Snapshot, plan: Plan, controller: ControllerInfo) -> dict[str, Any]:
    """Return the published document for a snapshot and the plan made from it.

    Keys: ``version, now, controller, mode, source, frozen, node_pools, classes, airflow_pools, runs, reservations,
    active_runs, tasks, tasks_left_out, actions, refusals``. Times are Unix seconds.
    """
    settings = snapshot.settings
    boot = dict(snapshot.boot)
    states = {state.node_pool: state for state in snapshot.node_pool_states}
    forecasts = {forecast.node_pool: forecast for forecast in plan.node_pools}
    kept = {refusal.about: refusal.reason.sentence for refusal in plan.kept}
    task_pods = Counter(pod.node for pod in snapshot.pods if pod.node and pod.takes_room)
    placeholders = Counter(pod.node for pod in snapshot.pods if pod.node and pod.placeholder_of)
    usable_slots = dict(plan.usable_slots)
    releasing = {name for action in plan.actions if isinstance(action, SetNodes) for name in action.release}

    tasks, tasks_left_out = task_entries(snapshot)

    node_pools = []
    for pool in settings.node_pools:
        nodes = [node for node in snapshot.nodes if node.node_pool == pool.name]
        estimate = boot.get(pool.name)
        state = states.get(pool.name)
        forecast = forecasts.get(pool.name)
        node_pools.append(
            {
                "name": pool.name,
                "provider": pool.provider,
                "capacity_type": pool.capacity_type.value,
                "price_per_node_hour": pool.price_per_node_hour,
                "min_nodes": pool.min_nodes,
                "max_nodes": pool.max_nodes,
                "shape": pool.shape.as_text(),
                "usable_nodes": sum(node.usable for node in nodes),
                "booting_nodes": sum(node.is_booting for node in nodes),
                "unusable_nodes": sum(not node.usable and not node.is_booting for node in nodes),
                "coming_nodes": state.coming_nodes if state else 0,
                "desired_nodes": state.desired_nodes if state else None,
                "failure": state.failure if state else "",
                "target_nodes": forecast.target_nodes if forecast else None,
                "boot_seconds_q50": estimate.q50_seconds if estimate else pool.boot_seconds,
                "boot_seconds_q90": estimate.q90_seconds if estimate else pool.boot_seconds_p95,
                "boot_samples": estimate.samples if estimate else 0,
                "forecast": [list(step) for step in forecast.steps] if forecast else [],
                "nodes": [
                    {
                        "name": node.name,
                        "state": "releasing"
                        if node.is_releasing or node.name in releasing
                        else "usable"
                        if node.usable
                        else "booting"
                        if node.is_booting
                        else "unusable",
                        "why": node.unusable_because,
                        "created_at": node.created_at,
                        "usable_since": node.usable_since,
                        "task_pods": task_pods[node.name],
                        "placeholders": placeholders[node.name],
                        "allocatable": node.allocatable.as_text(),
                        "kept_because": kept.get(node.name, ""),
                    }
                    for node in nodes
                ],
            }
        )
    return {
        "version": STATUS_VERSION,
        "now": snapshot.now,
        "controller": asdict(controller),
        "mode": settings.mode.value,
        "source": settings.source,
        "frozen": plan.frozen.sentence if plan.frozen else "",
        "node_pools": node_pools,
        "classes": [
            {
                "name": each.name,
                "node_pools": list(each.node_pools),
                "airflow_pool": each.airflow_pool,
                "slot_shape": each.slot_shape.as_text(),
                "priority_class": each.priority_class,
                "evictable": each.evictable,
            }
            for each in settings.classes
        ],
        "airflow_pools": [
            {
                "name": pool.name,
                "capacity_class": owner.name if (owner := settings.class_of_airflow_pool(pool.name)) else "",
                "slots": pool.slots,
                "usable_slots": usable_slots.get(pool.name),
                "occupied": pool.occupied,
                "running": pool.running,
                "queued": pool.queued,
                "deferred": pool.deferred,
                "scheduled": pool.scheduled,
            }
            for pool in snapshot.airflow_pools
        ],
        "runs": [_flat(run, _RUN) for run in plan.runs],
        "active_runs": [
            {
                "dag_id": run.dag_id,
                "run_id": run.run_id,
                "phase": run.phase.value,
                "starts_at": run.starts_at,
                "states": dict(Counter(task.state.value for task in run.tasks)),
            }
            for run in snapshot.runs
            if run.phase != "coming"
        ],
        "tasks": tasks,
        "tasks_left_out": tasks_left_out,
        "reservations": [
            {**_flat(reservation, _RESERVATION), "id": reservation.id, "state": reservation.state.value}
            for reservation in plan.reservations
        ],
        "actions": [
            {
                "kind": "slots" if isinstance(action, SetSlots) else "nodes",
                "about": action.airflow_pool if isinstance(action, SetSlots) else action.node_pool,
                "was": action.was,
                "to": action.slots if isinstance(action, SetSlots) else action.nodes,
                "code": action.reason.code.name,
                "sentence": action.reason.sentence,
            }
            for action in plan.actions
        ],
        "refusals": [
            {"about": refusal.about, "code": refusal.reason.code.name, "sentence": refusal.reason.sentence}
            for refusal in plan.refusals
        ],
    }


def _flat(record: object, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}
