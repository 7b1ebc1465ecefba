"""What is read again of a quiet installation, and that no change is missed by reading less."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from airflow.models.taskinstance import TaskInstance as Row
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG
from airflow_db_helpers import FixedProfiles, carrier, plain_annotation, seconds, start_run, write_dags
from sqlalchemy import event, text, update
from sqlalchemy.orm import Session

from airflow_elastic.airflow_db.reader import AirflowReader
from airflow_elastic.model.demand import Run, TaskState
from airflow_elastic.model.settings import Settings

NOW = seconds(2026, 5, 1, 12)


@pytest.fixture
def reader(database: Any, settings: Settings) -> AirflowReader:
    with DAG("two", schedule=None, is_paused_upon_creation=False) as dag:
        first = BashOperator(task_id="first", bash_command="true", executor_config=carrier(), pool="burst")
        first >> BashOperator(task_id="second", bash_command="true", executor_config=carrier(), pool="burst")
    with Session(database) as session:
        write_dags(session, dag)
        start_run(session, "two", "a")
        start_run(session, "two", "b")
    made = AirflowReader(lambda: settings, FixedProfiles(), engine=database, parse_annotation=plain_annotation)
    assert [len(run.tasks) for run in made.read(NOW).runs] == [2, 2]
    return made


def runs(reader: AirflowReader) -> dict[str, Run]:
    return {run.run_id: run for run in reader.read(NOW).runs}


def by_statement(session: Session) -> None:
    """As the scheduler sets many at once."""
    session.execute(update(Row).where(Row.run_id == "a", Row.task_id == "first").values(state="running"))


def by_object(session: Session) -> None:
    """As the API server does."""
    row = session.query(Row).filter_by(run_id="a", task_id="first").one()
    row.state = "running"


def by_hand(session: Session) -> None:
    """As somebody with a database client does, who leaves no mark."""
    session.execute(text("UPDATE task_instance SET state = 'running' WHERE run_id = 'a' AND task_id = 'first'"))


@pytest.mark.parametrize("change", [by_statement, by_object, by_hand])
def test_a_change_is_seen_at_the_next_read_and_touches_nothing_else(
    database: Any, reader: AirflowReader, change: Callable[[Session], None]
) -> None:
    before = runs(reader)
    with Session(database) as session:
        change(session)
        session.commit()
    after = runs(reader)
    assert [task.state for task in after["a"].tasks] == [TaskState.RUNNING, TaskState.NONE]
    assert after["b"] is before["b"]


def test_a_write_that_is_committed_after_a_later_one_is_seen(database: Any, reader: AirflowReader) -> None:
    with Session(database) as session:
        for task_id, at in (("first", 10), ("second", 20)):
            when = datetime(2026, 5, 1, 12, 0, at, tzinfo=UTC)
            row = (Row.run_id == "a") & (Row.task_id == task_id)
            session.execute(update(Row).where(row).values(try_number=0, updated_at=when))
        session.commit()
        assert [task.try_number for task in runs(reader)["a"].tasks] == [0, 0]
        when = datetime(2026, 5, 1, 12, 0, 15, tzinfo=UTC)
        row = (Row.run_id == "a") & (Row.task_id == "first")
        session.execute(update(Row).where(row).values(try_number=3, updated_at=when))
        session.commit()
    assert [task.try_number for task in runs(reader)["a"].tasks] == [3, 0]


def test_runs_that_come_and_go_are_seen(database: Any, reader: AirflowReader) -> None:
    with Session(database) as session:
        start_run(session, "two", "c")
        session.execute(text("UPDATE dag_run SET state = 'success' WHERE run_id = 'a'"))
        session.commit()
    assert {name: len(run.tasks) for name, run in runs(reader).items()} == {"b": 2, "c": 2}


@contextmanager
def rows_fetched(engine: Any) -> Iterator[list[str]]:
    statements: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "scheduled_dttm" in statement:
            statements.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(engine, "before_cursor_execute", note)


def test_a_quiet_read_fetches_no_task_instance(postgres: Any, settings: Settings) -> None:
    with DAG("one", schedule=None, is_paused_upon_creation=False) as dag:
        BashOperator(task_id="first", bash_command="true", executor_config=carrier(), pool="burst")
    with Session(postgres) as session:
        write_dags(session, dag)
        start_run(session, "one", "a")
    reader = AirflowReader(lambda: settings, FixedProfiles(), engine=postgres, parse_annotation=plain_annotation)
    (first,) = reader.read(NOW).runs
    with rows_fetched(postgres) as statements:
        (second,) = reader.read(NOW + 1).runs
        assert statements == []
        reader.read(NOW + 60)
        assert len(statements) == 1  # all are read now and then, whatever the marks say
    assert second is first
