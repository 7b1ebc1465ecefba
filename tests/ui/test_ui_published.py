from __future__ import annotations

import pytest
from ui_builders import HOSTILE, document

from airflow_elastic.ui.published import Availability, decision_records, read_published
from airflow_elastic.ui.words import clock, count, duration, moment, printable


class FakeStore:
    def __init__(self, status: dict | None, missing: str = "", decisions: list | None = None) -> None:
        self._status, self.missing_tables, self._decisions = status, missing, decisions or []

    def load_status(self) -> dict | None:
        return self._status

    def decisions(self, limit: int) -> list:
        return self._decisions[:limit]


def test_a_fresh_document_is_live_and_carries_its_age() -> None:
    published = read_published(FakeStore(document(1000.0)), 1002.5)
    assert published.availability is Availability.LIVE
    assert published.age_seconds == pytest.approx(2.5)
    assert published.sentence == ""


def test_a_clock_that_runs_behind_the_controllers_gives_no_negative_age() -> None:
    assert read_published(FakeStore(document(1000.0)), 990.0).age_seconds == 0.0


@pytest.mark.parametrize(("age", "availability"), [(29.0, Availability.LIVE), (31.0, Availability.STALE)])
def test_a_silent_controller_is_named_after_half_a_minute(age: float, availability: Availability) -> None:
    published = read_published(FakeStore(document(1000.0)), 1000.0 + age)
    assert published.availability is availability
    assert published.document is not None
    if availability is Availability.STALE:
        assert "airflow-scheduler-0:4711" in published.sentence
        assert "31 s" in published.sentence
        assert "airflow elastic controller" in published.next_step


def test_missing_tables_tell_the_command_that_makes_them() -> None:
    published = read_published(FakeStore(None, missing="elastic_status is missing"), 0.0)
    assert published.availability is Availability.NO_TABLES
    assert "airflow db migrate" in published.next_step
    assert not published.availability.has_document


def test_no_controller_tells_how_to_start_one() -> None:
    published = read_published(FakeStore(None), 0.0)
    assert published.availability is Availability.NO_CONTROLLER
    assert "airflow elastic controller" in published.next_step


@pytest.mark.parametrize("key", document(1000.0))
def test_a_document_that_lacks_a_part_or_has_another_kind_of_it_is_not_read(key: str) -> None:
    whole = document(1000.0)
    for odd in ({name: each for name, each in whole.items() if name != key}, {**whole, key: None}, {**whole, key: b""}):
        published = read_published(FakeStore(odd), 1000.0)
        assert published.availability is Availability.UNREADABLE
        assert "release" in published.sentence


@pytest.mark.parametrize("status", [{}, {"version": 99}, {"now": "soon", "node_pools": []}, {"now": 1.0}])
def test_a_document_of_another_release_is_named_not_crashed_on(status: dict) -> None:
    published = read_published(FakeStore(status), 0.0)
    assert published.availability is Availability.UNREADABLE
    assert published.document is None
    assert "same release" in published.next_step


def test_decisions_come_as_plain_records_newest_first() -> None:
    from airflow_elastic.airflow_db.store import Decision

    rows = [
        Decision(5.0, "nodes", "elastic", "PREWARM", "one", True),
        Decision(9.0, "slots", HOSTILE, "NOTE", "two", False),
    ]
    records = decision_records(FakeStore(None, decisions=rows), 10)
    assert [record["at"] for record in records] == [9.0, 5.0]
    assert records[0] == {
        "at": 9.0, "kind": "slots", "about": HOSTILE, "code": "NOTE", "sentence": "two", "applied": False,
    }  # fmt: skip


def test_words() -> None:
    assert [duration(seconds) for seconds in (0, 59.6, 61, 600, 5400, 7200, 300000)] == [
        "0 s", "1 min", "1 min 1 s", "10 min", "1 h 30 min", "2 h", "3 days",
    ]  # fmt: skip
    assert moment(100.0, 40.0) == "in 1 min"
    assert moment(100.0, 145.0) == "45 s ago"
    assert moment(100.0, 101.0) == "now"
    assert moment(None, 0.0) == "–"
    assert clock(0.0) == "1970-01-01 00:00:00 UTC"
    assert clock(1e30) == "–"
    assert count(1, "node") == "1 node"
    assert count(0, "entry", "entries") == "0 entries"
    assert printable("a\x1b[31mb\n") == "a�[31mb�"
