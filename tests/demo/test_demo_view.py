"""What is shown while the demo runs: the observer on a made-up stack, the live view, the progress lines."""

from __future__ import annotations

import io
import json
import sqlite3
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from airflow_elastic.demo.database import Database
from airflow_elastic.demo.observer import Observer
from airflow_elastic.demo.progress import Progress
from airflow_elastic.demo.variant import demo_variant
from airflow_elastic.demo.view import live_view

ALLOCATABLE = {"cpu": 4000, "memory": 8 * 2**30, "pods": 20}


def node(kind: str, name: str, pool: str) -> dict[str, object]:
    return {"t": time.time() - 5, "kind": f"node_{kind}", "node": name, "pool": pool, "allocatable": ALLOCATABLE}


@pytest.fixture
def stack(tmp_path: Path):
    database = tmp_path / "airflow.db"
    with sqlite3.connect(database) as connection:
        connection.executescript(
            """
            PRAGMA journal_mode=WAL;
            CREATE TABLE slot_pool (pool TEXT, slots INTEGER);
            INSERT INTO slot_pool VALUES ('core', 4), ('burst', 6), ('batch', 0);
            CREATE TABLE elastic_reservation (node_pool TEXT, nodes INTEGER, state TEXT);
            INSERT INTO elastic_reservation VALUES ('elastic', 2, 'ready');
            CREATE TABLE elastic_decision (id INTEGER PRIMARY KEY, at FLOAT, kind TEXT, about TEXT, sentence TEXT);
            INSERT INTO elastic_decision VALUES (1, 0, 'nodes', 'elastic', 'asks for 2 nodes');
            CREATE TABLE dag_run (dag_id, run_id, run_type, state, run_after, start_date, end_date);
            INSERT INTO dag_run VALUES
                ('nightly_etl', 'r1', 'scheduled', 'success', '2026-01-01 00:00:00', '2026-01-01 00:00:01',
                 '2026-01-01 00:01:11'),
                ('nightly_etl', 'm1', 'manual', 'success', '2026-01-01 00:00:00', '2026-01-01 00:00:01',
                 '2026-01-01 00:01:11'),
                ('billing_core', 'r1', 'scheduled', 'running', '2026-01-01 00:02:00', '2026-01-01 00:02:00', NULL);
            CREATE TABLE task_instance (dag_id, run_id, task_id, map_index, state, try_number);
            INSERT INTO task_instance VALUES ('billing_core', 'r1', 'a', -1, 'deferred', 1);
            """
        )
    events = [
        node("launch_requested", "f1", "fixed"),
        node("ready", "f1", "fixed"),
        node("launch_requested", "e1", "elastic"),
        node("ready", "e1", "elastic"),
        node("launch_requested", "e2", "elastic"),
        node("launch_requested", "e3", "elastic"),
        node("ready", "e3", "elastic"),
        node("cordoned", "e3", "elastic"),
    ]
    log = tmp_path / "events.jsonl"
    log.write_text("".join(json.dumps(event) + "\n" for event in events))
    return SimpleNamespace(
        database=lambda: Database(f"sqlite:///{database}"), event_log=log, home=tmp_path, variant=demo_variant()
    )


@pytest.fixture
def observer(stack: SimpleNamespace):
    observer = Observer(stack)
    observer.start()
    observer.refresh(decisions=5)
    observer.sampler.stop()  # after one look at least
    yield observer
    observer.stop()


def test_node_pools_and_slots_are_counted_from_outside(observer: Observer) -> None:
    counts = {each.pool: (each.usable, each.booting, each.other, each.reserved) for each in observer.node_counts()}
    assert counts == {"fixed": (1, 0, 0, 0), "elastic": (1, 1, 1, 2), "autoscaled": (0, 0, 0, 0)}
    slots = {each.pool: (each.slots, each.usable) for each in observer.pool_slots()}
    assert slots == {"core": (4, 4), "burst": (6, 4), "batch": (0, 0)}
    assert observer.finished_runs() == {"nightly_etl": 1}
    assert not observer.at_rest()


def test_the_stack_is_at_rest_when_nodes_are_at_the_minimum_and_slots_are_true(
    observer: Observer, stack: SimpleNamespace
) -> None:
    with stack.event_log.open("a") as log:
        for name in ("e1", "e2", "e3"):
            log.write(json.dumps(node("deleted", name, "elastic")) + "\n")
    observer.refresh()
    assert not observer.at_rest()  # burst still has slots
    observer.sampler.slots.append((time.time(), {"core": 4, "burst": 0, "batch": 0}))
    assert observer.at_rest()


def test_the_live_view_shows_nodes_slots_runs_and_decisions(observer: Observer) -> None:
    console = Console(width=150, file=io.StringIO(), record=True)
    console.print(live_view(observer, "http://127.0.0.1:8080", "2 runs finished"))
    shown = console.export_text()
    for text in ("http://127.0.0.1:8080/elastic/", "2 phantom", "nightly_etl", "1 deferred", "asks for 2 nodes", "■▨□"):
        assert text in shown


def test_progress_outside_a_terminal_is_a_line_now_and_then() -> None:
    stream = io.StringIO()
    progress = Progress(stream, every_seconds=3600)
    for second in range(5):
        progress.step("starting", f"detail {second}")
    progress.step("parsing")
    progress.say("done")
    lines = [line.split("] ")[1] for line in stream.getvalue().splitlines()]
    assert lines == ["starting… detail 0", "parsing…", "done"]


def test_progress_in_a_terminal_rewrites_its_line() -> None:
    stream = io.StringIO()
    stream.isatty = lambda: True  # type: ignore[method-assign]
    progress = Progress(stream)
    progress.step("starting")
    progress.step("starting")
    assert stream.getvalue() == "\r\x1b[2Kstarting… 0 s" * 2
