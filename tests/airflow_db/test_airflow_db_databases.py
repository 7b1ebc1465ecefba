"""The reader on both databases, PostgreSQL being where everything concurrent runs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG
from airflow_db_helpers import (
    FixedProfiles,
    carrier,
    create_runs_as_scheduler,
    plain_annotation,
    seconds,
    start_run,
    write_dags,
)  # fmt: skip
from sqlalchemy import event
from sqlalchemy.orm import Session

from airflow_elastic.airflow_db.reader import AirflowReader
from airflow_elastic.model.demand import RunPhase
from airflow_elastic.model.settings import Settings


def hourly() -> DAG:
    with DAG(
        "hourly", schedule="@hourly", start_date=datetime(2026, 5, 1), catchup=True, is_paused_upon_creation=False,
        params={"elastic": {"nodes": 2}},
    ) as dag:  # fmt: skip
        first = BashOperator(task_id="first", bash_command="true", executor_config=carrier(), pool="burst")
        first >> BashOperator.partial(task_id="each", executor_config=carrier()).expand(bash_command=["a", "b"])
    return dag


def reader_on(database: Any, settings: Settings) -> AirflowReader:
    return AirflowReader(lambda: settings, FixedProfiles(), engine=database, parse_annotation=plain_annotation)


def test_structures_runs_and_history_are_read(database: Any, settings: Settings) -> None:
    reader = reader_on(database, settings)
    with Session(database, expire_on_commit=False) as session:
        write_dags(session, hourly())
        predicted = [run for run in reader.read(seconds(2026, 5, 1)).runs if run.phase is RunPhase.COMING]
        real = create_runs_as_scheduler(session, "hourly", len(predicted))
        assert len(predicted) == 7
        assert [run.run_id for run in predicted] == [run.run_id for run in real]
        start_run(session, "hourly", "manual__1", conf={"elastic": {"nodes": 9}})
        for run in real[1:]:
            run.state = "success"
            for instance in run.task_instances:
                instance.state, instance.duration, instance.end_date = "success", 5.0, run.run_after
        session.commit()
    manual, first = reader.read(seconds(2026, 5, 1, 0, 1)).runs[:2]
    assert (manual.run_id, manual.phase, manual.annotation.nodes) == ("manual__1", RunPhase.ACTIVE, 9)  # type: ignore[union-attr]
    assert (first.run_id, first.phase, len(first.tasks)) == (predicted[0].run_id, RunPhase.QUEUED, 3)
    assert len(reader.history(seconds(2026, 5, 2))) == 18


def test_one_read_sees_one_state(database: Any, settings: Settings) -> None:
    """A run that ends while it is read still has its tasks: without them it would look as if all were to be done."""
    with Session(database, expire_on_commit=False) as session:
        write_dags(session, hourly())
        run = start_run(session, "hourly", "manual__1")
    reader = reader_on(database, settings)
    reader.read(0.0)
    asked: list[str] = []

    @event.listens_for(database, "before_cursor_execute")
    def end_the_run_in_between(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "FROM task_instance JOIN dag_run" in statement and not asked:
            asked.append(statement)
            with Session(database) as other:
                other.get(type(run), run.id).state = "success"
                other.commit()

    (found,) = reader.read(1.0).runs
    assert asked
    assert len(found.tasks) == 3
    assert reader.read(2.0).runs == ()
