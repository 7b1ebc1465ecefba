"""The demo's own view of the metadata DB: plain SQL on a read-only connection."""

from __future__ import annotations

import json
import sqlite3
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from airflow_elastic.demo import airflow_tables
from airflow_elastic.demo.database import Database, unix_seconds
from airflow_elastic.demo.sampler import Sampler
from airflow_elastic.errors import ConfigurationError, TemporaryError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "airflow.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(
            """
            PRAGMA journal_mode=WAL;
            CREATE TABLE slot_pool (pool TEXT, slots INTEGER);
            INSERT INTO slot_pool VALUES ('burst', 4), ('default_pool', 128);
            CREATE TABLE elastic_reservation (node_pool TEXT, nodes INTEGER, state TEXT);
            INSERT INTO elastic_reservation VALUES
                ('e', 2, 'ready'), ('e', 1, 'in_use'), ('e', 8, 'planned'), ('e', 8, 'released'), ('f', 1, 'warming');
            CREATE TABLE dag_run (dag_id, run_id, run_type, state, run_after, start_date, end_date);
            INSERT INTO dag_run VALUES
                ('d', 'r', 'scheduled', 'running', '2026-01-01 00:00:10.500000', '2026-01-01 00:00:11', NULL);
            CREATE TABLE task_instance (dag_id, run_id, task_id, map_index, state, try_number);
            INSERT INTO task_instance VALUES ('d', 'r', 'a', -1, 'success', 1), ('d', 'r', 'b', 0, NULL, 0);
            CREATE TABLE serialized_dag (dag_id, data, created_at);
            """
        )
        tasks = [
            {"__type": "operator", "__var": {"task_id": "a", "downstream_task_ids": ["b"]}},
            {"__type": "operator", "__var": {"task_id": "b"}},
            {"__type": "operator", "__var": {"task_id": "c", "downstream_task_ids": ["b"]}},
        ]
        old = {"dag": {"tasks": tasks[:1]}}
        for version, data in enumerate((old, {"dag": {"tasks": tasks}})):
            connection.execute("INSERT INTO serialized_dag VALUES ('d', ?, ?)", (json.dumps(data), version))
    return path


@pytest.fixture
def database(file: Path):
    database = Database(f"sqlite:///{file}")
    yield database
    database.close()


def test_runs_and_tasks(database: Database) -> None:
    base = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    (run,) = airflow_tables.runs(database)
    assert (run.run_after, run.started_at, run.ended_at, run.is_finished) == (base + 10.5, base + 11, None, False)
    assert [(task.task_id, task.map_index, task.state) for task in airflow_tables.tasks(database)] == [
        ("a", -1, "success"),
        ("b", 0, "none"),
    ]
    assert airflow_tables.task_states(database) == {("d", "r"): {"success": 1, "none": 1}}


def test_first_tasks_are_those_without_upstream_in_the_latest_version(database: Database) -> None:
    assert airflow_tables.first_tasks(database) == {"d": frozenset({"a", "c"})}


def test_the_connection_cannot_write(database: Database) -> None:
    with pytest.raises(TemporaryError, match="readonly"):
        database.rows("INSERT INTO slot_pool VALUES ('x', 1)")


def test_a_missing_table_is_no_accident(database: Database) -> None:
    assert airflow_tables.has_status(database) is False
    assert airflow_tables.decisions(database, 5) == []


def test_other_databases_are_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match="'mysql' is not supported by the demo"):
        Database("mysql+mysqldb://host/db")


def test_times_of_both_databases_are_read() -> None:
    moment = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert unix_seconds(moment) == moment.timestamp()
    assert unix_seconds("2026-01-01 12:00:00") == moment.timestamp()
    assert unix_seconds("2026-01-01 12:00:00.250000+00:00") == moment.timestamp() + 0.25
    assert unix_seconds(None) is None


def test_samples_are_kept_when_they_change(file: Path, tmp_path: Path) -> None:
    sampler = Sampler(Database(f"sqlite:///{file}"), tmp_path / "samples.jsonl", seconds=0.01)
    sampler.start()

    def wait_for_looks(count: int) -> None:
        deadline = time.monotonic() + 10
        while sampler.looks < count:
            assert time.monotonic() < deadline
            time.sleep(0.005)

    wait_for_looks(3)
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE slot_pool SET slots = 0 WHERE pool = 'burst'")
    wait_for_looks(sampler.looks + 3)
    sampler.stop()
    assert [slots["burst"] for _, slots in sampler.slots] == [4, 0]
    assert [reserved for _, reserved in sampler.reserved] == [{"e": 3, "f": 1}]
    kinds = [json.loads(line)["kind"] for line in (tmp_path / "samples.jsonl").read_text().splitlines()]
    assert sorted(kinds) == ["reserved", "slots", "slots"]
