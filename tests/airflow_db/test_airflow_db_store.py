"""Leader, fencing token and our own tables, on SQLite and on Postgres."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from sqlalchemy import text

from airflow_elastic.airflow_db.fencing import LeadershipLost
from airflow_elastic.airflow_db.leader import Leadership
from airflow_elastic.airflow_db.store import KEPT_DECISIONS, Decision, Store
from airflow_elastic.model.reservation import Reservation, ReservationState

DECISION = Decision(1.5, "nodes", "elastic", "PREWARM", "4 nodes are asked for", applied=True)


@pytest.fixture
def token(database: Any) -> int:
    return leader(database, "first").acquire_or_renew(1000.0) or 0


def leader(database: Any, holder: str) -> Leadership:
    return Leadership(holder, ttl_seconds=10, engine=database)


def reservation(run_id: str, **changes: Any) -> Reservation:
    values: dict[str, Any] = {
        "dag_id": "etl", "run_id": run_id, "node_pool": "elastic", "nodes": 3, "state": ReservationState.WARMING,
        "needed_at": 1700000000.25, "until_at": 2.0, "ask_at": 3.0, "asked_at": None, "expires_at": 4.0,
        "warm_nodes": 2, "changed_at": 5.0, "why": "it is needed — soon",
    }  # fmt: skip
    return Reservation(**{**values, **changes})


def test_one_leads_and_the_others_stand_by(database: Any) -> None:
    first, second = leader(database, "first"), leader(database, "second")
    assert first.acquire_or_renew(1000.0) == 1
    assert second.acquire_or_renew(1001.0) is None
    assert first.acquire_or_renew(1009.0) == 1
    assert second.acquire_or_renew(1018.9) is None
    assert second.acquire_or_renew(1019.0) == 2
    assert first.acquire_or_renew(1019.5) is None
    assert first.token is None


def test_a_leader_that_was_late_but_not_replaced_goes_on(database: Any) -> None:
    first = leader(database, "first")
    assert first.acquire_or_renew(1000.0) == 1
    assert first.acquire_or_renew(5000.0) == 1


def test_a_leader_that_died_before_the_clock_was_set_back_is_replaced(database: Any) -> None:
    clock = [0.0]
    second = Leadership("second", ttl_seconds=10, engine=database, monotonic=lambda: clock[0])
    first = leader(database, "first")
    assert first.acquire_or_renew(100_000.0) == 1
    answers = []
    for clock[0] in range(0, 30, 2):  # type: ignore[assignment]
        answers.append(second.acquire_or_renew(1000.0 + clock[0]))
        if clock[0] == 8.0:
            assert first.acquire_or_renew(1008.0) == 1  # it lives, with the clock as it is now
            first_renewed = len(answers)
    assert answers[:first_renewed] == [None] * first_renewed
    assert answers[-1] == 2
    assert first.acquire_or_renew(1030.0) is None


def test_a_row_that_nobody_renews_is_free_whatever_its_expiry_says(database: Any) -> None:
    clock = [0.0]
    second = Leadership("second", ttl_seconds=10, engine=database, monotonic=lambda: clock[0])
    assert leader(database, "first").acquire_or_renew(100_000.0) == 1
    assert second.acquire_or_renew(1000.0) is None
    clock[0] = 15.0
    assert second.acquire_or_renew(1015.0) is None
    clock[0] = 15.5
    assert second.acquire_or_renew(1015.5) == 2


def test_released_leadership_is_free_at_once_and_fenced(database: Any) -> None:
    first, second = leader(database, "first"), leader(database, "second")
    old = first.acquire_or_renew(1000.0)
    first.release()
    first.release()
    with pytest.raises(LeadershipLost):
        Store(engine=database).save_status({}, old or 0)
    new = second.acquire_or_renew(1000.1)
    assert new is not None
    assert old is not None
    assert new > old


def test_a_restarted_process_of_the_same_name_fences_its_predecessor_off(database: Any) -> None:
    old = leader(database, "host:7").acquire_or_renew(1000.0)
    new = leader(database, "host:7").acquire_or_renew(1000.5)
    assert (old, new) == (1, 2)


def test_of_many_that_start_at_once_one_leads(database: Any) -> None:
    tokens: list[int | None] = []
    start = threading.Barrier(6)

    def candidate(number: int) -> None:
        contender = leader(database, f"c{number}")
        start.wait()
        tokens.append(contender.acquire_or_renew(1000.0))

    threads = [threading.Thread(target=candidate, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(token for token in tokens if token) == [1]
    assert len(tokens) == 6


def test_documents_come_back_as_they_were(database: Any, token: int) -> None:
    store = Store(engine=database)
    assert store.load_status() is None
    assert store.load_profiles() is None
    document = {"version": 1, "text": "ö % :x 'quoted' \\", "list": [1.5, None, True], "big": "x" * 200_000}
    assert store.save_status(document, token)
    assert store.save_status({**document, "version": 2}, token)
    assert store.save_profiles({"a": 1}, token)
    assert store.load_status() == {**document, "version": 2}
    assert store.load_profiles() == {"a": 1}


def test_decisions_come_newest_first(database: Any, token: int) -> None:
    store = Store(engine=database)
    other = Decision(2.0, "slots", "burst", "SLOTS_FOLLOW_NODES", "4 slot(s)", applied=False)
    assert store.add_decisions([DECISION, other], token)
    assert store.add_decisions([], token)
    assert store.decisions(10) == [other, DECISION]
    assert store.decisions(1) == [other]
    assert store.decisions(10, about="elastic") == [DECISION]
    assert store.decisions(10, about="nothing") == []


def test_a_long_name_is_cut_to_fit(database: Any, token: int) -> None:
    store = Store(engine=database)
    store.add_decisions([Decision(1.0, "k" * 90, "a" * 900, "NOTE", "s" * 9000, applied=False)], token)
    (kept,) = store.decisions()
    assert (len(kept.kind), len(kept.about), len(kept.sentence)) == (32, 500, 9000)


def test_a_reservation_in_a_state_of_another_release_is_left_out(database: Any, token: int) -> None:
    store = Store(engine=database)
    store.save_reservations((reservation("old"), reservation("new")), token)
    with database.begin() as connection:
        connection.execute(text("UPDATE elastic_reservation SET state = 'dreaming' WHERE run_id = 'new'"))
    assert [each.run_id for each in store.load_reservations()] == ["old"]


def test_text_that_a_database_refuses_is_stored_without_what_it_refuses(database: Any, token: int) -> None:
    store = Store(engine=database)
    store.add_decisions([Decision(1.0, "problem", "d\0ag", "NOTE", "timetable said \ud800 and \0 €", False)], token)
    assert [(each.about, each.sentence) for each in store.decisions()] == [
        ("d\ufffdag", "timetable said ? and \ufffd €")
    ]
    store.save_reservations((reservation("r", why="a \0 b"),), token)
    assert store.load_reservations()[0].why == "a \ufffd b"


def test_reservations_are_replaced_as_a_whole(database: Any, token: int) -> None:
    store = Store(engine=database)
    first, second = reservation("a"), reservation("b", asked_at=7.5, state=ReservationState.IN_USE)
    assert store.save_reservations((first, second), token)
    assert set(store.load_reservations()) == {first, second}
    third = reservation("a", nodes=1)
    assert store.save_reservations((third,), token)
    assert store.load_reservations() == (third,)
    assert store.save_reservations((), token)
    assert store.load_reservations() == ()


def test_only_reservations_that_changed_are_written_again(database: Any, token: int) -> None:
    store = Store(engine=database)
    kept, changed, gone = reservation("kept"), reservation("changed"), reservation("gone")
    store.save_reservations((kept, changed, gone), token)
    with database.begin() as connection:
        connection.execute(text("UPDATE elastic_reservation SET why = 'untouched' WHERE run_id = 'kept'"))
    now = reservation("changed", nodes=7)
    store.save_reservations((kept, now, reservation("new")), token)
    found = {each.run_id: each for each in store.load_reservations()}
    assert found == {"kept": reservation("kept", why="untouched"), "changed": now, "new": reservation("new")}


def test_a_new_leader_writes_all_reservations_whatever_it_wrote_before(database: Any, token: int) -> None:
    first = Store(engine=database)
    first.save_reservations((reservation("a"), reservation("b")), token)
    other = leader(database, "second").acquire_or_renew(1010.0) or 0
    Store(engine=database).save_reservations((reservation("c"),), other)
    again = leader(database, "first").acquire_or_renew(1030.0) or 0
    assert again == token + 2
    first.save_reservations((reservation("a"), reservation("b")), again)
    assert {each.run_id for each in first.load_reservations()} == {"a", "b"}


def test_every_write_of_a_stale_token_is_refused_and_leaves_no_trace(database: Any, token: int) -> None:
    store = Store(engine=database)
    store.save_status({"by": "first"}, token)
    store.save_reservations((reservation("a"),), token)
    new = leader(database, "second").acquire_or_renew(1010.0)
    assert new == token + 1
    for write in (
        lambda: store.save_status({"by": "stale"}, token),
        lambda: store.save_profiles({"by": "stale"}, token),
        lambda: store.add_decisions([DECISION], token),
        lambda: store.save_reservations((reservation("b"),), token),
        lambda: store.save_reservations((), token),
    ):
        with pytest.raises(LeadershipLost, match="another controller"):
            write()
    assert store.load_status() == {"by": "first"}
    assert store.load_profiles() is None
    assert store.decisions() == []
    assert store.load_reservations() == (reservation("a"),)
    assert store.save_status({"by": "second"}, new)


def test_only_the_latest_decisions_are_kept(database: Any, token: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert KEPT_DECISIONS == 5_000
    monkeypatch.setattr("airflow_elastic.airflow_db.store.KEPT_DECISIONS", 5)
    monkeypatch.setattr("airflow_elastic.airflow_db.store._CUT_EVERY", 3)
    store = Store(engine=database)
    for number in range(13):
        store.add_decisions([Decision(float(number), "nodes", "p", "NOTE", str(number), applied=True)], token)
    kept = [decision.sentence for decision in store.decisions(100)]
    assert kept == ["12", "11", "10", "9", "8"]


def test_without_our_tables_nothing_fails_and_the_next_step_is_named(database: Any) -> None:
    names = ("leader", "status", "profile", "decision", "reservation")
    try:
        with database.begin() as connection:
            for name in names:
                connection.execute(text(f"ALTER TABLE elastic_{name} RENAME TO away_{name}"))
        store = Store(engine=database)
        assert "run: airflow db migrate" in store.missing_tables
        assert "elastic_status" in store.missing_tables
        assert store.load_status() is None
        assert store.load_profiles() is None
        assert store.load_reservations() == ()
        assert store.decisions() == []
        assert store.save_status({}, 1) is False
        assert store.save_profiles({}, 1) is False
        assert store.add_decisions([DECISION], 1) is False
        assert store.save_reservations((), 1) is False
        candidate = leader(database, "first")
        assert candidate.acquire_or_renew(1000.0) is None
        assert "airflow db migrate" in candidate.missing_tables
        candidate.release()
    finally:
        with database.begin() as connection:
            for name in names:
                connection.execute(text(f"ALTER TABLE away_{name} RENAME TO elastic_{name}"))
    assert Store(engine=database).missing_tables == ""


def test_a_document_that_is_cut_off_counts_as_none(database: Any, token: int) -> None:
    store = Store(engine=database)
    store.save_status({"a": 1}, token)
    with database.begin() as connection:
        connection.execute(text("UPDATE elastic_status SET document = '{\"a\": '"))
    assert store.load_status() is None
