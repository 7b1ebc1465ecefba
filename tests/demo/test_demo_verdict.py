from __future__ import annotations

from typing import Any

import pytest

from airflow_elastic.demo.verdict import complaints


def run(dag_id: str, run_id: str, **more: Any) -> dict[str, Any]:
    return {"dag_id": dag_id, "run_id": run_id, "state": "success", "cold_tasks": [], "prewarmed": True, **more}


def report(**more: Any) -> dict[str, Any]:
    runs = [run("d", "r1", cold_tasks=["a"], prewarmed=False), run("d", "r2"), run("d", "r3", prewarmed=False)]
    detail = {"slot_seconds": 1000.0, "node_pools": {"elastic": {"nodes_end": 1}}, "runs": runs}
    values = {"failed_tasks": 0, "phantom_slot_seconds": 10.0, "placeholders_end": 0, "detail": detail}
    for name, value in more.items():
        (detail if name in detail else values)[name] = value
    return values


def test_a_cold_first_run_is_no_complaint() -> None:
    assert complaints(report(), {"elastic": 1}, [], 2) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"failed_tasks": 2}, "2 tasks failed"),
        ({"phantom_slot_seconds": 10.1}, "10.1 phantom slot-seconds are more than 1% of 1000.0 slot-seconds"),
        ({"placeholders_end": 1}, "1 placeholder pods are left"),
        ({"runs": [run("d", "r1", state="failed")]}, "d r1 failed"),
        ({"runs": [run("d", "r1"), run("d", "r2", cold_tasks=["a"])]}, "d: its second run had cold tasks: a"),
        ({"runs": [run("d", "r1"), run("d", "r2", prewarmed=False)]}, "d: its second run was not pre-warmed"),
        (
            {"node_pools": {"elastic": {"nodes_end": 3}}},
            "node pool elastic ends with 3 nodes, its minimum is 1",
        ),
    ],
)
def test_what_was_promised_and_not_kept_is_said(change: dict[str, Any], said: str) -> None:
    assert complaints(report(**change), {"elastic": 1}, [], 2) == [said]


def test_what_did_not_finish_is_listed_and_the_end_state_is_then_not_judged() -> None:
    said = complaints(report(node_pools={"elastic": {"nodes_end": 3}}), {"elastic": 1}, ["d: 1 of 2 runs"], 2)
    assert said == ["not finished in time: d: 1 of 2 runs"]
