"""Runs of the past with the length of each of their tasks: what a simulation replays."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from sqlalchemy import func, select

from airflow_elastic.airflow_db.database import as_datetime, as_seconds

__all__ = ["PastRow", "read_past"]

_MOST_ROWS = 1_000_000


PastRow = tuple[str, str, float, bool, str, int, float]
"""(dag_id, run_id, start of the run, is it scheduled, task_id, map_index, seconds)"""


def read_past(connection: Any, dag_ids: Collection[str], now: float, days: float) -> Iterator[PastRow]:
    """Yield the successful task instances of the last days' runs, by the runs' start; the newest if there are many."""
    from airflow.models.dagrun import DagRun
    from airflow.models.taskinstance import TaskInstance

    if not dag_ids:
        return
    run, task = DagRun.__table__.c, TaskInstance.__table__.c
    starts = func.coalesce(run.run_after, run.start_date)
    query = (
        select(run.dag_id, run.run_id, starts, run.run_type, task.task_id, task.map_index, task.duration)
        .join(TaskInstance.__table__, (task.dag_id == run.dag_id) & (task.run_id == run.run_id))
        .where(task.state == "success", task.duration.is_not(None), starts >= as_datetime(now - days * 86_400.0))
        .where(starts <= as_datetime(now), run.dag_id.in_(sorted(dag_ids)))
        .order_by(starts.desc())
        .limit(_MOST_ROWS)
    )
    rows = connection.execute(query).all()
    for dag_id, run_id, starts_at, run_type, task_id, map_index, seconds in reversed(rows):
        if starts_at is not None and seconds is not None and seconds >= 0:
            at = as_seconds(starts_at) or now
            yield dag_id, run_id, at, str(run_type) == "scheduled", task_id, int(map_index), float(seconds)
