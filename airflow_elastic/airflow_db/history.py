"""How long tasks took in the past: the first profiles of an installation that has run for a while."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from sqlalchemy import func, select

from airflow_elastic.airflow_db.database import as_datetime, as_seconds

__all__ = ["read_history"]

_ROWS_OF_A_TASK = 50
_MOST_ROWS = 100_000
_MOST_NAMES = 1_000


def read_history(
    connection: Any, dag_ids: Collection[str], now: float, limit_days: float = 30.0
) -> Iterator[tuple[str, str, float, float]]:
    """Yield (dag_id, task_id, seconds, finished at) of successful task instances, the oldest first.

    At most the latest 50 of each task; the last try only, since earlier ones did not finish their work.
    """
    from airflow.models.taskinstance import TaskInstance

    if not dag_ids:
        return
    task = TaskInstance.__table__.c
    rank = (
        func.row_number().over(partition_by=(task.dag_id, task.task_id), order_by=task.end_date.desc()).label("newness")
    )
    query = select(task.dag_id, task.task_id, task.duration, task.end_date, rank).where(
        task.state == "success",
        task.duration.is_not(None),
        task.end_date >= as_datetime(now - limit_days * 86_400.0),
    )
    if len(dag_ids) <= _MOST_NAMES:
        query = query.where(task.dag_id.in_(sorted(dag_ids)))
    ranked = query.subquery().c
    rows = connection.execute(
        select(ranked.dag_id, ranked.task_id, ranked.duration, ranked.end_date)
        .where(ranked.newness <= _ROWS_OF_A_TASK)
        .order_by(ranked.end_date)
        .limit(_MOST_ROWS)
    ).all()
    for dag_id, task_id, seconds, finished in rows:
        if dag_id in dag_ids and seconds is not None and seconds >= 0:
            yield dag_id, task_id, float(seconds), as_seconds(finished) or now
