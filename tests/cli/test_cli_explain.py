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

from ui_builders import HOSTILE, decisions, document

from airflow_elastic.cli.commands import explain
from airflow_elastic.ui.published import Availability, Published


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def called(subject: Any, output: str = "table", published: Published | None = None) -> tuple[int, str]:
        now = time.time()
        live = published or Published(Availability.LIVE, document(now), 0.5)
        monkeypatch.setattr(explain, "open_published", lambda _: (None, live))
        monkeypatch.setattr(explain, "decision_records", lambda *_: decisions(now))
        with pytest.raises(SystemExit) as ended:
            explain.run(argparse.Namespace(output=output, subject=subject))
        return int(ended.value.code or 0), capsys.readouterr().out

    return called


def test_a_node_is_explained_with_why_it_is_kept(call) -> None:
    code, text = call("elastic-0001")
    assert code == 0
    assert "node of elastic" in text
    assert "sooner than a new node would pay" in text


def test_a_pool_is_explained_with_its_decisions(call) -> None:
    code, text = call("elastic")
    assert code == 0
    assert "Decisions" in text
    assert "they are asked for now" in text


def test_a_run_may_be_given_as_two_words(call) -> None:
    run_id = call("nightly_etl", "json")[1]
    run_id = next(word for word in json.loads(run_id)["sentences"][0].split() if word.startswith("scheduled__"))
    assert json.loads(call(["nightly_etl", run_id], "json")[1])["kind"] == "run"


def test_json_is_one_document(call) -> None:
    code, text = call(HOSTILE, "json")
    answer = json.loads(text)
    assert code == 0
    assert answer["title"] == HOSTILE
    assert answer["availability"] == "live"
    assert answer["decisions"][0]["code"] == "UNKNOWN_CLASS"


def test_an_unknown_name_ends_with_1_and_names_its_neighbours(call) -> None:
    code, text = call("spot-lrage")
    assert code == 1
    assert "See also: spot-large" in text


def test_an_explanation_of_a_silent_controller_says_that_it_is_old(call) -> None:
    old = Published(
        Availability.STALE, document(1000.0), 500.0, "The controller has been silent for 8 min.", "Start it."
    )
    assert "silent for 8 min" in call("elastic", published=old)[1]


def test_without_a_controller_it_says_so(call) -> None:
    nothing = Published(Availability.NO_CONTROLLER, sentence="No controller has reported yet.", next_step="Start one.")
    code, text = call("elastic", published=nothing)
    assert code == 1
    assert "Start one." in text
