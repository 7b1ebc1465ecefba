"""What one task instance waits for, or where it runs, in one sentence; from the published document."""

from __future__ import annotations

from collections import Counter
from typing import Any

from airflow_elastic.ui.words import count, duration, moment

__all__ = ["is_of_task", "named_task", "pods_on_node", "task_sentence"]

Document = dict[str, Any]
_MOST_NAMES = 5


def named_task(task: Document) -> str:
    """Return ``DAG_ID.TASK_ID``, with the map index of a mapped one in brackets."""
    index = f"[{task['map_index']}]" if task["map_index"] >= 0 else ""
    return f"{task['dag_id']}.{task['task_id']}{index}"


def is_of_task(task: Document, subject: str) -> bool:
    """Tell whether a subject names this task, one of its mapped instances, or either one in one run."""
    names = (f"{task['dag_id']}.{task['task_id']}", named_task(task))
    return any(subject in (name, f"{name} {task['run_id']}") for name in names)


def pods_on_node(document: Document, node: str) -> str:
    """Return the tasks whose pods are on a node, as ``3 of etl.load, 1 of etl.check``; empty where none is known."""
    tasks = (task for task in document.get("tasks", ()) if task["pod"] and task["pod"]["node"] == node)
    names = Counter(f"{task['dag_id']}.{task['task_id']}" for task in tasks).most_common()
    more = f", {count(len(names) - _MOST_NAMES, 'more task')}" if len(names) > _MOST_NAMES else ""
    return ", ".join(f"{number} of {name}" for name, number in names[:_MOST_NAMES]) + more


def task_sentence(document: Document, task: Document) -> str:
    """Return where a held-back or started task instance stands and why."""
    now, pod, state = document["now"], task["pod"], task["state"].replace("_", " ")
    if pod and pod["node"]:
        if pod["started_at"]:
            return f"runs on {pod['node']} since {duration(now - pod['started_at'])}."
        return f"its pod is bound to {pod['node']} and starts ({pod['phase']})."
    if pod:
        since = pod["unschedulable_since"] or pod["created_at"]
        return f"its pod waits for a node{f' for {duration(now - since)}' if since else ''}{_nodes(document, task)}."
    if task["state"] == "scheduled":
        return _held_back(document, task)
    if task["state"] == "queued":
        return "is queued: the executor has it, and its pod is not created yet."
    since = f" since {moment(task['started_at'], now)}" if task["started_at"] else ""
    if task["needs_node"] is False:
        return f"is {state} on Airflow's own workers{since}: it needs no node."
    return f"is {state}{since}; no pod of it is seen: it is not created yet, or has ended."


def _held_back(document: Document, task: Document) -> str:
    name, needs = task["airflow_pool"], task["pool_slots"]
    pool = next((each for each in document["airflow_pools"] if each["name"] == name), None)
    nodes = _nodes(document, task)
    if pool is None:
        return f"waits: it goes through the Airflow pool {name!r}, which is not known here."
    if pool["slots"] >= 0:
        open_slots = max(0, pool["slots"] - pool["occupied"])
        if open_slots < needs:
            return f"waits: Airflow pool {name} has {open_slots} open of the {count(needs, 'slot')} it needs{nodes}."
        return (
            f"is next: Airflow pool {name} has {open_slots} open and it needs {needs}; unless a limit of the DAG or "
            "another task's priority holds it back, Airflow's scheduler queues it now."
        )
    return f"is next: Airflow pool {name} is unlimited; only Airflow's scheduler or a limit of the DAG holds it back."


def _nodes(document: Document, task: Document) -> str:
    """Return how its node pools stand, as the end of a sentence."""
    own = next((each for each in document["classes"] if each["name"] == task["capacity_class"]), None)
    wanted = task["node_pools"] or (own["node_pools"] if own else [])
    parts = []
    for pool in (each for each in document["node_pools"] if each["name"] in wanted):
        coming = pool["booting_nodes"] + pool["coming_nodes"]
        target = "" if pool["target_nodes"] is None else f"target {pool['target_nodes']}, "
        boots = f"{count(coming, 'node')} {'boots' if coming == 1 else 'boot'}" if coming else "none boots"
        failure = f", {pool['failure']}" if pool["failure"] else ""
        parts.append(f"; node pool {pool['name']}: {target}{pool['usable_nodes']} usable, {boots}{failure}")
    return "".join(parts)
