"""Airflow's own api-server application with the page mounted by the plugin: who gets what."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ui_builders import HOSTILE

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home = tmp_path_factory.mktemp("airflow-home")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW__")} | {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:ADMIN,viewer:VIEWER",
        "PYTHONPATH": str(HERE),
    }
    for command in (
        [sys.executable, "-m", "airflow", "db", "migrate"],
        [sys.executable, str(HERE / "ui_airflow_probe.py")],
    ):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_an_anonymous_caller_is_refused_on_every_route(seen: dict[str, Any]) -> None:
    assert {path for _, path in seen["routes"]} >= {"/", "/api/status", "/api/decisions", "/api/explain"}
    for method, path in seen["routes"]:
        status, text = seen["anonymous"][f"{method} {path}"]
        assert status == 401, f"{method} {path}"
        assert "node_pools" not in text


def test_there_is_no_public_documentation_of_the_routes(seen: dict[str, Any]) -> None:
    for path in ("/docs", "/redoc", "/openapi.json", "/static/../pages/index.html", "/static/%2e%2e/app.py"):
        assert seen["anonymous"][f"GET {path}"][0] in (401, 404), path


def test_a_person_without_a_session_is_shown_the_way_in(seen: dict[str, Any]) -> None:
    assert seen["anonymous_page"]["status"] == 401
    assert "Sign in" in seen["anonymous_page"]["text"]
    assert "main.js" not in seen["anonymous_page"]["text"]


def test_static_files_are_free_and_checked_for_newer_ones(seen: dict[str, Any]) -> None:
    assert seen["anonymous_static"]["status"] == 200
    assert seen["anonymous_static"]["headers"]["cache-control"] == "no-cache"
    assert "javascript" in seen["anonymous_static"]["headers"]["content-type"]


def test_a_forged_token_is_refused(seen: dict[str, Any]) -> None:
    assert seen["bad_token"] in (401, 403)


@pytest.mark.parametrize("role", ["admin", "viewer"])
def test_who_is_signed_in_reads_everything(seen: dict[str, Any], role: str) -> None:
    got = seen["roles"][role]
    assert got["page"]["status"] == 200
    assert "script-src 'self'" in got["page"]["headers"]["content-security-policy"]
    assert "unsafe" not in got["page"]["headers"]["content-security-policy"]
    assert got["status"]["availability"] == "live"
    document = got["status"]["document"]
    assert [pool["name"] for pool in document["node_pools"]] == ["fixed", "elastic", "spot-large"]
    assert {run["dag_id"] for run in document["active_runs"]} == {"billing_daily", "ml_features"}
    assert got["decisions"]["decisions"][0]["about"] == HOSTILE
    assert got["explain"]["kind"] == "node pool"
    assert got["explain_unknown"]["found"] is False


def test_a_hostile_name_comes_back_as_json_text(seen: dict[str, Any]) -> None:
    answer = seen["roles"]["admin"]["explain_hostile"]
    assert answer["headers"]["content-type"] == "application/json"
    assert json.loads(answer["text"])["title"] == HOSTILE


def test_an_unchanged_status_is_not_sent_again(seen: dict[str, Any]) -> None:
    again = seen["roles"]["admin"]["again"]
    assert again["status"] == 304
    assert again["text"] == ""
    assert float(again["headers"]["elastic-age"]) >= float(seen["roles"]["admin"]["age"])


def test_figures_out_of_range_are_refused(seen: dict[str, Any]) -> None:
    assert seen["roles"]["admin"]["bad_limit"] == 422
    assert seen["roles"]["admin"]["explain_long"] in (414, 422)


def test_the_browsers_session_cookie_is_enough(seen: dict[str, Any]) -> None:
    assert seen["cookie"] == 200


def test_without_the_permissions_every_route_is_forbidden(seen: dict[str, Any]) -> None:
    assert len(seen["forbidden"]) == 8
    assert set(seen["forbidden"].values()) == {403}


def test_dags_that_a_user_may_not_read_have_no_name(seen: dict[str, Any]) -> None:
    hidden = seen["hidden_dags"]
    assert "nightly_etl" in hidden["status"]
    for name in ("ml_features", "billing_daily", "forecast_hourly"):
        assert name not in hidden["status"]
    assert HOSTILE not in hidden["decisions"]
    assert hidden["explain"]["found"] is False


def test_before_the_first_controller_the_next_step_is_told(seen: dict[str, Any]) -> None:
    assert seen["before_controller"]["availability"] == "no_controller"
    assert "airflow elastic controller" in seen["before_controller"]["next_step"]


def test_a_silent_controller_is_told_with_its_last_word(seen: dict[str, Any]) -> None:
    assert seen["stale"]["availability"] == "stale"
    assert "silent" in seen["stale"]["sentence"]
    assert seen["stale"]["document"] is not None


def test_without_our_tables_nothing_crashes(seen: dict[str, Any]) -> None:
    assert seen["no_tables"]["status"]["availability"] == "no_tables"
    assert seen["no_tables"]["decisions"] == {"decisions": []}
    assert seen["no_tables"]["explain"] == 404


def test_airflow_lists_the_plugin_with_its_view(seen: dict[str, Any]) -> None:
    plugin = next(each for each in seen["navigation"]["plugins"] if each["name"] == "airflow_elastic")
    assert plugin["fastapi_apps"][0]["url_prefix"] == "/elastic"
    assert plugin["external_views"][0]["href"] == "/elastic/"
    assert plugin["listeners"] == []
