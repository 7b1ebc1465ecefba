"""Airflow's pools: occupancy as Airflow counts it, and writes that hold no lock."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG
from airflow_db_helpers import MakeReader, carrier, seconds, start_run, write_dags
from sqlalchemy import event, text
from sqlalchemy.orm import Session

from airflow_elastic.airflow_db.leader import Leadership
from airflow_elastic.airflow_db.pools import PoolChange, ensure_pool, read_pools, write_slots
from airflow_elastic.errors import TemporaryError
from airflow_elastic.model.snapshot import AirflowPool


def pools_of(database: Any) -> dict[str, AirflowPool]:
    with database.connect() as connection:
        return {pool.name: pool for pool in read_pools(connection)}


def test_slots_are_written_only_on_change(database: Any) -> None:
    assert ensure_pool("burst", 3, "made by airflow-elastic", engine=database) is PoolChange.CREATED
    assert write_slots("burst", 5, engine=database)
    assert not write_slots("burst", 5, engine=database)
    assert not write_slots("missing", 5, engine=database)
    assert write_slots("burst", 0, engine=database)
    assert pools_of(database)["burst"].slots == 0
    assert pools_of(database)["default_pool"].slots == 128


def test_a_stale_token_changes_no_slots(database: Any) -> None:
    ensure_pool("burst", 3, "", engine=database)
    old = Leadership("first", engine=database).acquire_or_renew(1000.0) or 0
    assert write_slots("burst", 4, token=old, engine=database)
    new = Leadership("second", engine=database).acquire_or_renew(1010.0) or 0
    assert not write_slots("burst", 9, token=old, engine=database)
    assert pools_of(database)["burst"].slots == 4
    assert write_slots("burst", 5, token=new, engine=database)


def test_a_pool_is_made_counting_deferred_tasks_and_only_once(database: Any) -> None:
    assert ensure_pool("burst", 3, "made by airflow-elastic", engine=database) is PoolChange.CREATED
    assert ensure_pool("burst", 9, "something else", engine=database) is PoolChange.NOTHING
    assert pools_of(database)["burst"] == AirflowPool("burst", 3, include_deferred=True)
    with database.connect() as connection:
        found = connection.execute(text("SELECT description FROM slot_pool WHERE pool = 'burst'")).scalar()
    assert found == "made by airflow-elastic"


def test_a_pool_that_does_not_count_deferred_tasks_is_made_to(database: Any) -> None:
    from airflow.models.pool import Pool

    with Session(database) as session:
        session.add(Pool(pool="burst", slots=7, description="hers", include_deferred=False))
        session.commit()
    assert ensure_pool("burst", 3, "", engine=database) is PoolChange.COUNTS_DEFERRED
    assert ensure_pool("burst", 3, "", engine=database) is PoolChange.NOTHING
    assert pools_of(database)["burst"] == AirflowPool("burst", 7, include_deferred=True)


def test_occupancy_is_what_airflow_counts(database: Any) -> None:
    from airflow.models.pool import Pool

    ensure_pool("burst", 20, "", engine=database)
    with Session(database, expire_on_commit=False) as session:
        with DAG("wide", schedule=None) as dag:
            for number in range(7):
                BashOperator(task_id=f"t{number}", bash_command="true", pool="burst", pool_slots=number + 1)
        write_dags(session, dag)
        run = start_run(session, "wide", "manual__1")
        states = ["running", "queued", "deferred", "scheduled", "success", "up_for_retry", "running"]
        for instance, state in zip(sorted(run.task_instances, key=lambda each: each.task_id), states, strict=True):
            instance.state = state
        session.commit()
        stats = Pool.slots_stats(session=session)["burst"]
    found = pools_of(database)["burst"]
    assert found == AirflowPool("burst", 20, running=1 + 7, queued=2, deferred=3, scheduled=4)
    assert found.slots - found.occupied == stats["open"]
    assert {name: getattr(found, name) for name in ("running", "queued", "deferred", "scheduled")} == {
        name: stats[name] for name in ("running", "queued", "deferred", "scheduled")
    }


def test_a_missing_pool_of_a_class_is_named(session: Any, engine: Any, make_reader: MakeReader) -> None:
    ensure_pool("core", 1, "", engine=engine)
    with DAG("d", schedule=None) as dag:
        BashOperator(task_id="t", bash_command="true", executor_config=carrier())
    write_dags(session, dag)
    view = make_reader().read(seconds(2026, 5, 1))
    assert [pool.name for pool in view.airflow_pools] == ["core", "default_pool"]
    (problem,) = view.problems
    assert problem.startswith("Airflow pool burst of capacity class burst does not exist")


def test_a_write_is_one_statement_of_its_own(postgres: Any) -> None:
    ensure_pool("burst", 3, "", engine=postgres)
    statements: list[tuple[str, bool]] = []

    @event.listens_for(postgres, "before_cursor_execute")
    def note(_connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        statements.append((statement.split()[0], cursor.connection.autocommit))

    write_slots("burst", 6, engine=postgres)
    assert statements == [("SET", True), ("UPDATE", True), ("RESET", True)]


def test_a_write_gives_up_soon_where_the_scheduler_holds_the_row(postgres: Any) -> None:
    ensure_pool("burst", 3, "", engine=postgres)
    with postgres.begin() as scheduler:
        scheduler.execute(text("SELECT * FROM slot_pool FOR NO KEY UPDATE NOWAIT"))
        begun = time.monotonic()
        with pytest.raises(TemporaryError, match="6 slots to Airflow pool burst failed"):
            write_slots("burst", 6, engine=postgres)
        assert time.monotonic() - begun < 5
    assert write_slots("burst", 6, engine=postgres)
    with postgres.connect() as connection:
        assert connection.execute(text("SHOW lock_timeout")).scalar() == "0"


def test_writing_all_the_time_hardly_disturbs_the_scheduler(postgres: Any) -> None:
    ensure_pool("burst", 3, "", engine=postgres)
    stop = threading.Event()
    written: list[bool] = []

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            try:
                written.append(write_slots("burst", number, engine=postgres))
            except TemporaryError:
                written.append(False)
            time.sleep(0.02)

    thread = threading.Thread(target=write)
    thread.start()
    lost = 0
    try:
        for _ in range(100):
            try:
                with postgres.begin() as scheduler:
                    scheduler.execute(text("SELECT * FROM slot_pool FOR NO KEY UPDATE NOWAIT"))
            except Exception:
                lost += 1
            time.sleep(0.01)
    finally:
        stop.set()
        thread.join(10)
    assert sum(written) >= 10
    assert lost <= 10


def test_a_locked_sqlite_is_a_temporary_error(engine: Any) -> None:
    ensure_pool("burst", 3, "", engine=engine)
    from sqlalchemy import create_engine

    impatient = create_engine(engine.url, connect_args={"timeout": 0.05})
    with engine.connect() as other:
        other.exec_driver_sql("BEGIN IMMEDIATE")
        with pytest.raises(TemporaryError, match="database is locked"):
            write_slots("burst", 6, engine=impatient)
        with pytest.raises(TemporaryError, match="database is locked"):
            Leadership("first", engine=impatient).acquire_or_renew(1000.0)
        other.rollback()
    assert write_slots("burst", 6, engine=impatient)
    impatient.dispose()
