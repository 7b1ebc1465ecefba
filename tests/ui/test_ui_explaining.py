from __future__ import annotations

import json

import pytest
from ui_builders import HOSTILE, decisions, document, settings

from airflow_elastic.model.demand import DagShape, Run, RunPhase, TaskInstance, TaskState
from airflow_elastic.model.settings import Mode
from airflow_elastic.model.snapshot import Snapshot
from airflow_elastic.model.status_tasks import task_entries
from airflow_elastic.ui.asks import ask_text
from airflow_elastic.ui.explaining import explain_subject, known_subjects

NOW = 1_800_000_000.0


def explain(subject: str) -> dict:
    return explain_subject(document(NOW), decisions(NOW), subject)


def test_a_node_says_its_state_its_pods_and_why_it_is_kept() -> None:
    answer = explain("elastic-0001")
    assert answer["kind"] == "node of elastic"
    assert "It is usable." in answer["sentences"]
    assert any("task pods run there" in sentence for sentence in answer["sentences"])
    assert any("elastic-0001 stays: nightly_etl needs it in 75 s" in sentence for sentence in answer["sentences"])
    assert "elastic" in answer["related"]


def test_a_node_that_is_not_usable_says_why() -> None:
    assert any("booting: NotReady" in sentence for sentence in explain("elastic-0002")["sentences"])


def test_a_node_pool_says_its_target_its_failure_its_plan_and_its_decisions() -> None:
    answer = explain("spot-large")
    assert any("stock-out in zone b" in sentence for sentence in answer["sentences"])
    elastic = explain("elastic")
    assert any("the plan wants 5" in sentence for sentence in elastic["sentences"])
    assert any(sentence.startswith("Now: nodes 4 → 5: nightly_etl") for sentence in elastic["sentences"])
    assert {record["code"] for record in elastic["decisions"]} >= {"PREWARM", "RELEASE_NO_DOWNSTREAM"}
    assert ["boot time", "38 s, at times 1 min 1 s (42 boots seen)"] in elastic["facts"]


@pytest.mark.parametrize(("mode", "nodes", "slots"), [
    (Mode.OBSERVE, "Recommended", "Recommended"), (Mode.SYNC, "Recommended", "Now"), (Mode.MANAGE, "Now", "Now"),
])  # fmt: skip
def test_what_the_mode_does_not_allow_is_recommended_only(mode: Mode, nodes: str, slots: str) -> None:
    made = document(NOW, mode=mode)
    for subject, word, kind in (("elastic", nodes, "nodes"), ("burst", slots, "slots")):
        sentences = explain_subject(made, [], subject)["sentences"]
        assert any(sentence.startswith(f"{word}: {kind} ") for sentence in sentences)


def test_a_name_may_be_a_class_and_an_airflow_pool_at_once() -> None:
    answer = explain("burst")
    assert answer["kind"] == "Airflow pool, capacity class"
    assert any("18 slots are offered and 12 fit" in sentence for sentence in answer["sentences"])
    assert any("elastic, then spot-large" in sentence for sentence in answer["sentences"])


def test_a_pool_that_no_class_uses_is_left_alone() -> None:
    assert explain("default_pool")["sentences"] == ["No capacity class uses this pool: it is left alone."]


def test_a_dag_tells_when_its_nodes_are_asked_for_and_its_reservation() -> None:
    answer = explain("nightly_etl")
    assert answer["kind"] == "DAG"
    needs = next(sentence for sentence in answer["sentences"] if "needs 3 nodes of elastic" in sentence)
    assert "in 1 min 18 s" in needs
    assert "they were asked for 5 s ago" in needs
    assert any("is warming: the first of its nodes boots" in sentence for sentence in answer["sentences"])


def test_no_time_of_asking_is_told_for_what_nobody_asks_for_or_asked_for() -> None:
    made = document(NOW)
    run = {**made["runs"][2], "ask_at": NOW - 500}
    assert run["dag_id"] == "billing_daily"
    assert ask_text(made, made["runs"][2]) == "in 9 min 15 s"
    assert ask_text(made, run) == "–"
    assert ask_text(made, {**made["runs"][2], "node_pool": "fixed"}) == "–"
    assert ask_text(made, made["runs"][0]) == "5 s ago"
    made["runs"] = [run]
    assert not any("asked for" in sentence for sentence in explain_subject(made, [], "billing_daily")["sentences"])


def test_a_run_is_found_by_its_id_and_by_both_ids() -> None:
    run_id = f"scheduled__{int(NOW) + 75}"
    for subject in (run_id, f"nightly_etl {run_id}", f"  nightly_etl   {run_id} "):
        answer = explain(subject)
        assert answer["kind"] == "run"
        assert any("needs 3 nodes" in sentence for sentence in answer["sentences"])


def test_a_task_that_can_never_run_says_so() -> None:
    answer = explain("ml_features.train_wide")
    assert answer["found"]
    assert any("it can never run" in sentence for sentence in answer["sentences"])
    assert any("it can never run" in sentence for sentence in explain("ml_features")["sentences"])


def test_a_held_back_task_tells_the_slots_that_it_misses_and_the_nodes_that_come() -> None:
    answer = explain("billing_daily.task_3")
    assert answer["kind"] == "task"
    assert "waits: Airflow pool burst has 7 open" not in answer["sentences"][0]
    made = document(NOW)
    next(pool for pool in made["airflow_pools"] if pool["name"] == "burst")["slots"] = 11
    sentence = explain_subject(made, [], "billing_daily.task_3")["sentences"][0]
    assert "waits: Airflow pool burst has 0 open of the 2 slots it needs; node pool elastic: target 5" in sentence
    assert "2 nodes boot; node pool spot-large" in sentence


def test_a_task_with_a_pod_tells_its_node_or_how_long_it_waits_for_one() -> None:
    assert "runs on fixed-1 since 1 min 5 s." in explain("billing_daily.task_1")["sentences"][0]
    assert "its pod waits for a node for 12 s; node pool" in explain("billing_daily.task_2")["sentences"][0]
    run_id = f"scheduled__{int(NOW) - 340}"
    assert explain(f"billing_daily.task_1 {run_id}")["kind"] == "task"


def test_a_busy_node_names_the_tasks_on_it() -> None:
    assert any("1 of billing_daily.task_1" in sentence for sentence in explain("fixed-1")["sentences"])


def test_a_task_that_neither_waits_nor_runs_is_told_apart_from_an_unknown_name() -> None:
    assert any("held back or started now" in sentence for sentence in explain("billing_daily.task_0")["sentences"])
    assert not any("held back or started now" in sentence for sentence in explain("no_dag.task_0")["sentences"])


def test_more_task_instances_than_are_published_are_counted() -> None:
    run = Run(
        "wide", "r", RunPhase.ACTIVE, NOW, DagShape("wide", ()),
        tuple(TaskInstance("t", index, TaskState.SCHEDULED) for index in range(30)),
    )  # fmt: skip
    entries, left_out = task_entries(Snapshot(NOW, settings(), runs=(run,)), 20)
    assert (len(entries), left_out) == (20, 10)


def test_an_unknown_name_is_answered_with_its_neighbours() -> None:
    answer = explain("elastik")
    assert not answer["found"]
    assert "elastic" in answer["related"]
    assert "'elastik'" in answer["sentences"][0]


@pytest.mark.parametrize("subject", [HOSTILE, "", " ", "x" * 5000, "\x00", "a b c d", "]["])
def test_no_subject_breaks_it(subject: str) -> None:
    json.dumps(explain(subject))


def test_every_known_name_is_found() -> None:
    made = document(NOW, nodes=40)
    names = known_subjects(made)
    assert len(names) == len(set(names)) > 40
    for name in names:
        assert explain_subject(made, [], name)["found"], name
