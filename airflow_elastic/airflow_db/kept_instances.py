"""Task instances of unfinished runs, read again only for the runs in which something changed.

Ten thousand rows a second, most of them the same as a second ago, cost more to fetch and to build than all else that a
quiet read does. On PostgreSQL one grouped query tells for each run whether anything in it changed; other databases, and
now and then PostgreSQL too, give all rows.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import func, select

from airflow_elastic.airflow_db.existing_runs import MOST_TASK_INSTANCES, read_task_instances, unfinished_instances
from airflow_elastic.model.demand import TaskInstance

__all__ = ["KeptInstances"]

_READ_ALL_SECONDS = 30.0
"""A change that leaves no mark (somebody's own SQL) is seen after this at the latest."""
_MOST_SINGLE_RUNS = 200
"""With more changed runs than this all are read."""

_Run = tuple[str, str]
_Found = dict[_Run, tuple[TaskInstance, ...]]


class KeptInstances:
    """Cache of one reader. A run's tuple is the same object until something in the run changes."""

    def __init__(self) -> None:
        self._marks: dict[_Run, tuple[Any, ...]] = {}
        self._found: _Found = {}
        self._read_all_at: float | None = None

    def read(self, connection: Any, dag_ids: Collection[str], now: float) -> tuple[_Found, str]:
        """Return the task instances by (dag_id, run_id), and a sentence if there are more than are read."""
        if not dag_ids:
            return {}, ""
        if connection.dialect.name != "postgresql":
            return self._all(connection, dag_ids, {}, now)
        marks = _marks(connection, dag_ids)
        changed = [run for run, mark in marks.items() if self._marks.get(run) != mark]
        young = self._read_all_at is not None and 0 <= now - self._read_all_at < _READ_ALL_SECONDS
        too_many = sum(mark[0] for mark in marks.values()) > MOST_TASK_INSTANCES
        if not young or too_many or len(changed) > _MOST_SINGLE_RUNS:
            return self._all(connection, dag_ids, marks, now)
        read, _ = read_task_instances(connection, dag_ids, changed) if changed else ({}, "")
        found = {run: self._kept(run, read[run]) if run in read else self._found.get(run, ()) for run in marks}
        self._marks, self._found = marks, found
        return found, ""

    def _all(
        self, connection: Any, dag_ids: Collection[str], marks: dict[_Run, tuple[Any, ...]], now: float
    ) -> tuple[_Found, str]:
        read, problem = read_task_instances(connection, dag_ids)
        self._found = {run: self._kept(run, instances) for run, instances in read.items()}
        self._marks, self._read_all_at = marks, now
        return self._found, problem

    def _kept(self, run: _Run, read: list[TaskInstance]) -> tuple[TaskInstance, ...]:
        """Return what was read, as the object that was returned before where it is equal."""
        made, old = tuple(read), self._found.get(run)
        return old if old == made else made


def _marks(connection: Any, dag_ids: Collection[str]) -> dict[_Run, tuple[Any, ...]]:
    """Return for each unfinished run something that changes whenever a task instance of it does (PostgreSQL)."""
    from airflow.models.taskinstance import TaskInstance as TaskInstanceRow

    task = TaskInstanceRow.__table__.c
    query = unfinished_instances(
        select(
            task.dag_id,
            task.run_id,
            func.count(),
            # Airflow sets it with every write; two writes that are committed in the other order change the sum too.
            func.sum(func.extract("epoch", task.updated_at)),
            func.sum(func.hashtext(func.coalesce(task.state, ""))),
        ),
        dag_ids,
    ).group_by(task.dag_id, task.run_id)
    return {(dag_id, run_id): tuple(mark) for dag_id, run_id, *mark in connection.execute(query) if dag_id in dag_ids}
