from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ui"))

from ui_builders import document

from airflow_elastic.cli.commands import plan
from airflow_elastic.model.reasons import Reason, ReasonCode
from airflow_elastic.model.settings import Mode
from airflow_elastic.ui.published import Availability, Published


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def called(made: dict[str, Any] | None, output: str = "table") -> tuple[int, str]:
        published = Published(Availability.LIVE, made, 0.5) if made else Published(
            Availability.NO_CONTROLLER, sentence="No controller has reported yet.", next_step="Start one."
        )  # fmt: skip
        monkeypatch.setattr(plan, "open_published", lambda now: (None, published))
        with pytest.raises(SystemExit) as ended:
            plan.run(argparse.Namespace(output=output))
        return int(ended.value.code or 0), capsys.readouterr().out

    return called


def test_the_plan_shows_actions_coming_runs_reservations_and_refusals(call) -> None:
    code, text = call(document(time.time()))
    assert code == 0
    assert re.search(r"nodes +elastic +4 +5 ", text)
    for word in ("nightly_etl", "5 s ago", "warming", "Not done", "it can never run"):
        assert word in text


def test_coming_runs_are_in_the_order_in_which_they_are_asked_for(call) -> None:
    _, text = call(document(1_800_000_000.0), "json")
    asked = [run["ask_at"] for run in json.loads(text)["coming"]]
    assert asked == sorted(asked)
    assert len(asked) == 5


def test_json_has_the_whole_plan(call) -> None:
    code, text = call(document(1_800_000_000.0), "json")
    answer = json.loads(text)
    assert code == 0
    assert {action["kind"] for action in answer["actions"]} == {"nodes", "slots"}
    assert {refusal["code"] for refusal in answer["refusals"]} == {"PROVIDER_FAILED", "IMPOSSIBLE_TASK"}
    assert len(answer["reservations"]) == 4
    assert answer["node_pools"][1]["target_nodes"] == 5


@pytest.mark.parametrize(("mode", "words"), [
    (Mode.OBSERVE, "Recommended (mode observe: nothing is done)"),
    (Mode.SYNC, "mode sync: slots only"),
])  # fmt: skip
def test_what_is_only_recommended_is_called_so(call, mode: Mode, words: str) -> None:
    assert words in call(document(time.time(), mode=mode))[1]


def test_a_quiet_installation_says_that_there_is_nothing_to_do(call) -> None:
    made = document(time.time()) | {"actions": [], "runs": [], "reservations": [], "refusals": []}
    _, text = call(made)
    assert "Nothing to change now." in text
    assert "No coming or active run needs nodes" in text


def test_without_a_controller_it_says_so(call) -> None:
    code, text = call(None)
    assert code == 1
    assert "No controller has reported yet." in text
    assert json.loads(call(None, "json")[1])["availability"] == "no_controller"


def test_nodes_of_a_reservation_are_called_coming_until_they_are_usable(call) -> None:
    assert "2 coming" in call(document(1_800_000_000.0))[1]


def test_what_is_needed_at_once_is_needed_now() -> None:
    figures = {"node": "n", "needed_by": "etl", "hold_seconds": 90}
    assert "etl needs it now, sooner" in Reason.of(ReasonCode.KEPT_SOON_NEEDED, in_seconds=0.2, **figures).sentence
    assert "etl needs it in 10 s" in Reason.of(ReasonCode.KEPT_SOON_NEEDED, in_seconds=10, **figures).sentence
