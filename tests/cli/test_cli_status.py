from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ui"))

from ui_builders import document

from airflow_elastic.cli.commands import status
from airflow_elastic.ui.published import read_published


class FakeStore:
    def __init__(self, made: dict[str, Any] | None, missing: str = "") -> None:
        self.made, self.missing_tables, self.reads = made, missing, 0

    def load_status(self) -> dict[str, Any] | None:
        self.reads += 1
        return self.made


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def called(made: dict[str, Any] | None, output: str = "table", missing: str = "") -> tuple[int, str]:
        store = FakeStore(made, missing)
        monkeypatch.setattr(status, "open_published", lambda now: (store, read_published(store, now)))
        with pytest.raises(SystemExit) as ended:
            status.run(argparse.Namespace(output=output, watch=False))
        return int(ended.value.code or 0), capsys.readouterr().out

    return called


def test_a_live_controller_ends_with_0_and_shows_pools_slots_and_runs(call) -> None:
    code, text = call(document(time.time()))
    assert code == 0
    for word in ("airflow-scheduler-0:4711", "mode manage", "spot-large", "stock-out", "billing_daily", "phantom"):
        assert word in text
    burst = next(line for line in text.splitlines() if line.split()[:2] == ["burst", "burst"])
    assert burst.split()[2:] == ["18", "12", "6", "11", "1", "9"]


def test_json_is_the_document_with_its_age(call) -> None:
    code, text = call(document(time.time()), "json")
    answer = json.loads(text)
    assert code == 0
    assert answer["availability"] == "live"
    assert 0 <= answer["age_seconds"] < 30
    assert [pool["name"] for pool in answer["document"]["node_pools"]] == ["fixed", "elastic", "spot-large"]


@pytest.mark.parametrize("output", ["table", "json"])
def test_without_a_controller_it_says_how_to_start_one(call, output: str) -> None:
    code, text = call(None, output)
    assert code == status.EXIT_NOTHING
    assert "airflow elastic controller" in text
    if output == "json":
        assert json.loads(text)["document"] is None


def test_without_tables_it_says_which_command_makes_them(call) -> None:
    code, text = call(None, missing="elastic_status is missing")
    assert code == status.EXIT_NOTHING
    assert "airflow db migrate" in text


def test_a_silent_controller_has_its_own_exit_code(call) -> None:
    code, text = call(document(time.time() - 120))
    assert code == status.EXIT_SILENT
    assert "silent for 2 min" in text


def test_a_frozen_controller_has_its_own_exit_code_and_a_broken_file_is_named(call) -> None:
    code, text = call(document(time.time(), frozen=True, error="capacity.yaml, line 3: max_node: unknown key"))
    assert code == status.EXIT_FROZEN
    assert "Frozen: the view of the cluster is 74 s old" in text
    assert "line 3: max_node" in text


def test_foreign_text_neither_steers_the_terminal_nor_is_markup(call) -> None:
    made = document(time.time())
    made["active_runs"][0]["dag_id"] = "\x1b]0;owned\x07[red]x[/red]"
    _, text = call(made)
    assert "\x1b" not in text
    assert "[red]x[/red]" in text


def test_an_unlimited_pool_and_a_pool_without_known_capacity_are_shown(call) -> None:
    made = document(time.time())
    made["airflow_pools"][0] |= {"slots": -1, "usable_slots": None}
    _, text = call(made)
    assert "unlimited" in next(line for line in text.splitlines() if line.split()[:2] == ["core", "core"])


def test_watching_as_json_prints_a_line_for_each_new_document_until_interrupted(monkeypatch, capsys) -> None:
    store = FakeStore(document(1000.0))
    sleeps: list[float] = []

    def sleep(seconds: float) -> None:
        sleeps.append(seconds)
        if len(sleeps) == 2:
            store.made = document(1001.0)
        if len(sleeps) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(status, "open_published", lambda now: (store, read_published(store, now)))
    monkeypatch.setattr(status.time, "sleep", sleep)
    status.run(argparse.Namespace(output="json", watch=True))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["document"]["now"] for line in lines] == [1000.0, 1001.0]


def test_watching_as_tables_draws_again_and_ends_quietly(monkeypatch, capsys) -> None:
    store = FakeStore(document(time.time()))

    def sleep(_: float) -> None:
        if store.reads > 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(status, "open_published", lambda now: (store, read_published(store, now)))
    monkeypatch.setattr(status.time, "sleep", sleep)
    status.run(argparse.Namespace(output="table", watch=True))
    assert store.reads == 4
    assert "spot-large" in capsys.readouterr().out
