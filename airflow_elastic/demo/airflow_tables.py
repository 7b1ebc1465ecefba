"""Airflow's tables as the demo reads them: runs, task instances, structure; and what our controller published."""

from __future__ import annotations

import json
from typing import Any

from airflow_elastic.demo.database import Database, unix_seconds
from airflow_elastic.demo.measurement import RunRow, TaskRow
from airflow_elastic.errors import TemporaryError

__all__ = ["decisions", "first_tasks", "has_status", "runs", "task_states", "tasks"]


def runs(database: Database) -> list[RunRow]:
    """Return all DAG runs, oldest first."""
    columns = "dag_id, run_id, run_type, state, run_after, start_date, end_date"
    return [
        RunRow(dag_id, run_id, run_type, state, unix_seconds(after) or 0.0, unix_seconds(start), unix_seconds(end))
        for dag_id, run_id, run_type, state, after, start, end in database.rows(
            f"SELECT {columns} FROM dag_run ORDER BY run_after, dag_id"
        )
    ]


def tasks(database: Database) -> list[TaskRow]:
    """Return all task instances."""
    statement = "SELECT dag_id, run_id, task_id, map_index, state, try_number FROM task_instance"
    return [
        TaskRow(dag_id, run_id, task_id, index, state or "none", tries)
        for dag_id, run_id, task_id, index, state, tries in database.rows(statement)
    ]


def task_states(database: Database) -> dict[tuple[str, str], dict[str, int]]:
    """Return (dag_id, run_id) → state → number of task instances."""
    statement = "SELECT dag_id, run_id, COALESCE(state, 'none'), COUNT(*) FROM task_instance GROUP BY 1, 2, 3"
    found: dict[tuple[str, str], dict[str, int]] = {}
    for dag_id, run_id, state, count in database.rows(statement):
        found.setdefault((dag_id, run_id), {})[state] = count
    return found


def first_tasks(database: Database) -> dict[str, frozenset[str]]:
    """Return dag_id → ids of the tasks without upstream, from the serialized DAGs."""
    found = {}
    for dag_id, data in database.rows("SELECT dag_id, data FROM serialized_dag ORDER BY created_at"):
        document: dict[str, Any] = json.loads(data) if isinstance(data, str) else data
        entries = [task.get("__var", task) for task in document["dag"]["tasks"]]
        downstream = {name for entry in entries for name in entry.get("downstream_task_ids", ())}
        found[dag_id] = frozenset(entry["task_id"] for entry in entries) - downstream
    return found


def has_status(database: Database) -> bool:
    """Tell whether the controller has published a status."""
    try:
        return bool(database.rows("SELECT COUNT(*) FROM elastic_status")[0][0])
    except TemporaryError:
        return False


def decisions(database: Database, limit: int) -> list[tuple[float, str, str, str]]:
    """Return the latest decisions, newest first: (time, kind, object, sentence)."""
    statement = "SELECT at, kind, about, sentence FROM elastic_decision ORDER BY id DESC LIMIT ?"
    try:
        return [(float(at), kind, about, sentence) for at, kind, about, sentence in database.rows(statement, (limit,))]
    except TemporaryError:
        return []
