"""Runs that exist and have not ended, with their task instances: two bounded queries of plain columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import case, select, tuple_

from airflow_elastic.airflow_db.database import as_seconds
from airflow_elastic.model.demand import RunPhase, TaskInstance, TaskState

__all__ = [
    "MOST_RUNS",
    "MOST_TASK_INSTANCES",
    "ExistingRun",
    "read_runs",
    "read_task_instances",
    "unfinished_instances",
]

MOST_RUNS = 5_000
MOST_TASK_INSTANCES = 200_000
# Databases take some thousands of parameters in one statement; beyond this the filter is done here.
_MOST_NAMES = 1_000

_UNFINISHED = ("running", "queued")
_STATES = {state.value: state for state in TaskState}


@dataclass(frozen=True, slots=True)
class ExistingRun:
    """A queued or running DAG run."""

    dag_id: str
    run_id: str
    phase: RunPhase
    starts_at: float
    """Its start; of a queued one the time it waits for or since."""
    annotation: object = None
    """``conf["elastic"]`` as it was given; None: nothing was."""
    is_backfill: bool = False
    is_paused: bool = False
    """Its DAG is paused: no further task of it starts."""


def read_runs(connection: Any, dag_ids: Collection[str]) -> tuple[list[ExistingRun], str]:
    """Return the unfinished runs of some DAGs, and a sentence if there are more than are read."""
    if not dag_ids:
        return [], ""
    from airflow.models.dag import DagModel
    from airflow.models.dagrun import DagRun

    run, dag = DagRun.__table__.c, DagModel.__table__.c
    query = (
        select(
            run.dag_id,
            run.run_id,
            run.state,
            run.run_after,
            run.queued_at,
            run.start_date,
            run.conf,
            run.run_type,
            dag.is_paused,
        )
        .select_from(DagRun.__table__.outerjoin(DagModel.__table__, run.dag_id == dag.dag_id))
        .where(run.state.in_(_UNFINISHED))
        .order_by(case((run.state == "running", 0), else_=1), run.run_after, run.id)
        .limit(MOST_RUNS + 1)
    )
    if len(dag_ids) <= _MOST_NAMES:
        query = query.where(run.dag_id.in_(sorted(dag_ids)))
    rows = connection.execute(query).mappings().all()
    problem = ""
    if len(rows) > MOST_RUNS:
        problem = f"more than {MOST_RUNS} DAG runs are queued or running: the last queued ones are not planned for yet"
    return [_existing_run(row) for row in rows[:MOST_RUNS] if row["dag_id"] in dag_ids], problem


def _existing_run(row: Mapping[str, Any]) -> ExistingRun:
    is_running = row["state"] == "running"
    run_after = as_seconds(row["run_after"]) or 0.0
    since = as_seconds(row["start_date"]) if is_running else as_seconds(row["queued_at"])
    conf = row["conf"]
    return ExistingRun(
        dag_id=row["dag_id"],
        run_id=row["run_id"],
        phase=RunPhase.ACTIVE if is_running else RunPhase.QUEUED,
        # A run may be queued for a later time: it starts no sooner.
        starts_at=(since or run_after) if is_running else max(since or run_after, run_after),
        annotation=conf.get("elastic") if isinstance(conf, dict) else None,
        is_backfill=row["run_type"] == "backfill",
        is_paused=bool(row["is_paused"]),
    )


def read_task_instances(
    connection: Any, dag_ids: Collection[str], runs: Collection[tuple[str, str]] | None = None
) -> tuple[dict[tuple[str, str], list[TaskInstance]], str]:
    """Return the task instances of some DAGs' unfinished runs by (dag_id, run_id), and a sentence if cut short.

    With ``runs`` only of these.
    """
    if not dag_ids:
        return {}, ""
    from airflow.models.dagrun import DagRun
    from airflow.models.taskinstance import TaskInstance as TaskInstanceRow

    run, task = DagRun.__table__.c, TaskInstanceRow.__table__.c
    query = unfinished_instances(
        select(
            task.dag_id,
            task.run_id,
            task.task_id,
            task.map_index,
            task.state,
            task.try_number,
            task.start_date,
            task.scheduled_dttm,
            task.next_method.is_not(None),
        ),
        dag_ids,
    )
    if runs is not None:
        query = query.where(tuple_(task.dag_id, task.run_id).in_(sorted(runs)))
    query = query.order_by(
        case((run.state == "running", 0), else_=1), run.run_after, run.id, task.task_id, task.map_index
    ).limit(MOST_TASK_INSTANCES + 1)
    found: dict[tuple[str, str], list[TaskInstance]] = {}
    rows = connection.execute(query).all()
    for dag_id, run_id, *fields in rows[:MOST_TASK_INSTANCES]:
        if dag_id in dag_ids:
            found.setdefault((dag_id, run_id), []).append(_task_instance(*fields))
    problem = ""
    if len(rows) > MOST_TASK_INSTANCES:
        problem = f"more than {MOST_TASK_INSTANCES} task instances are in unfinished runs: the last ones are not seen"
    return found, problem


def unfinished_instances(query: Any, dag_ids: Collection[str]) -> Any:
    """Return a query of task instances confined to unfinished runs, and to some DAGs as far as a statement can."""
    from airflow.models.dagrun import DagRun
    from airflow.models.taskinstance import TaskInstance as TaskInstanceRow

    run, task = DagRun.__table__.c, TaskInstanceRow.__table__.c
    query = query.select_from(
        TaskInstanceRow.__table__.join(DagRun.__table__, (run.dag_id == task.dag_id) & (run.run_id == task.run_id))
    ).where(run.state.in_(_UNFINISHED))
    return query.where(task.dag_id.in_(sorted(dag_ids))) if len(dag_ids) <= _MOST_NAMES else query


def _task_instance(
    task_id: str, map_index: int, state: str | None, try_number: int, started: Any, ready: Any, was_deferred: bool
) -> TaskInstance:
    known = _STATES.get(state or "none", TaskState.NONE)
    return TaskInstance(
        task_id=task_id,
        map_index=map_index,
        state=known,
        try_number=try_number or 0,
        started_at=as_seconds(started),
        ready_at=as_seconds(ready),
        # A trigger leaves next_method when it has fired; a retry and a clear remove it.
        # Airflow keeps it while the worker that closes the task runs.
        resumes=(known.is_held_back or known is TaskState.RUNNING) and bool(was_deferred),
    )
