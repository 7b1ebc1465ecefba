from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from ui_builders import HOSTILE, document

from airflow_elastic.ui.explaining import explain_subject
from airflow_elastic.ui.visibility import HIDDEN_DAG, HIDDEN_RUN, Veil, dag_ids_of

NOW = 1_800_000_000.0
LISTS = ("runs", "active_runs", "reservations", "tasks")


def test_someone_who_may_read_every_dag_gets_the_document_itself() -> None:
    made = document(NOW)
    veil = Veil.over(made, dag_ids_of(made), dag_ids_of(made))
    assert not veil
    assert veil.over_value(made) is made


def test_hidden_dags_vanish_everywhere_and_the_figures_stay() -> None:
    made = document(NOW)
    hidden = dag_ids_of(made) - {"nightly_etl"}
    seen = Veil.over(made, dag_ids_of(made), {"nightly_etl"}).over_value(made)
    text = json.dumps(seen)
    for dag_id in hidden:
        assert dag_id not in text
    assert "nightly_etl" in text
    for name in LISTS:
        assert len(seen[name]) == len(made[name])
        for before, after in zip(made[name], seen[name], strict=True):
            is_hidden = before["dag_id"] in hidden
            assert after["dag_id"] == (HIDDEN_DAG if is_hidden else before["dag_id"])
            assert after["run_id"] == (HIDDEN_RUN if is_hidden else before["run_id"])
    assert [pool["nodes"] for pool in seen["node_pools"]] == [pool["nodes"] for pool in made["node_pools"]]
    assert [run["nodes"] for run in seen["runs"]] == [run["nodes"] for run in made["runs"]]


def test_a_task_of_a_hidden_dag_is_listed_without_its_name() -> None:
    made = document(NOW)
    seen = Veil.over(made, dag_ids_of(made), {"ml_features"}).over_value(made)
    for before, after in zip(made["tasks"], seen["tasks"], strict=True):
        shown = before["dag_id"] == "ml_features"
        assert (after["task_id"] == before["task_id"]) == shown
        assert after["state"] == before["state"]
    assert not explain_subject(seen, [], "billing_daily.task_1")["found"]
    assert "billing_daily" not in json.dumps(explain_subject(seen, [], "fixed-1"))


def test_a_reservations_id_is_no_digest_of_a_hidden_name() -> None:
    made = document(NOW)
    seen = Veil.over(made, (), {"nightly_etl"}).over_value(made)
    for before, after in zip(made["reservations"], seen["reservations"], strict=True):
        assert (before["id"] == after["id"]) == (before["dag_id"] == "nightly_etl")


def test_a_task_of_a_hidden_dag_keeps_only_the_tasks_name() -> None:
    assert Veil({"etl"}).text("etl.load asks for cpu 16.") == f"{HIDDEN_DAG}.load asks for cpu 16."


def test_a_longer_name_that_begins_alike_is_another_dag() -> None:
    veil = Veil({"etl"}, readable={"etl.nightly", "etl_daily"})
    assert veil.text("etl, etl.nightly, etl.nightly.load, etl_daily and my-etl.") == (
        f"{HIDDEN_DAG}, etl.nightly, etl.nightly.load, etl_daily and my-etl."
    )


def test_a_dag_called_like_a_node_pool_does_not_hide_the_pool() -> None:
    made = document(NOW)
    seen = Veil({"elastic", "usable", "name", "manage"}).over_value(made)
    assert [pool["name"] for pool in seen["node_pools"]] == ["fixed", "elastic", "spot-large"]
    assert seen["mode"] == "manage"
    assert {node["state"] for pool in seen["node_pools"] for node in pool["nodes"]} >= {"usable"}


def test_run_ids_of_hidden_dags_are_hidden_in_sentences_unless_a_shown_run_has_the_same() -> None:
    made = document(NOW)
    made["active_runs"] = [
        {"dag_id": "secret", "run_id": "manual__for customer X", "phase": "active", "starts_at": NOW, "states": {}},
        {"dag_id": "secret", "run_id": "scheduled__1", "phase": "active", "starts_at": NOW, "states": {}},
        {"dag_id": "open", "run_id": "scheduled__1", "phase": "active", "starts_at": NOW, "states": {}},
    ]
    made["runs"], made["reservations"], made["tasks"] = [], [], []
    veil = Veil.over(made, (), {"open"})
    assert veil.text("secret run manual__for customer X waits") == f"{HIDDEN_DAG} run {HIDDEN_RUN} waits"
    assert veil.text("open run scheduled__1 waits") == "open run scheduled__1 waits"


def test_a_name_that_airflow_would_not_allow_is_hidden_too() -> None:
    assert HOSTILE not in Veil({HOSTILE}).text(f"x {HOSTILE} y")


NAMES = st.text(alphabet="ab._-", min_size=1, max_size=6)


@given(st.sets(NAMES, max_size=5), st.sets(NAMES, max_size=5), st.lists(NAMES, min_size=1, max_size=6))
def test_no_hidden_name_survives_as_a_word_and_no_readable_one_is_touched(
    hidden: set[str], readable: set[str], words: list[str]
) -> None:
    hidden -= readable
    seen = Veil(hidden, readable=readable).text(" ".join(words)).replace(HIDDEN_DAG, "\0").split(" ")
    for word, shown in zip(words, seen, strict=True):
        if word in readable:
            assert shown == word
        if word in hidden:
            assert shown == "\0"
