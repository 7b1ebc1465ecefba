"""The ledger's tables: no stretch of a node's time is written twice, whatever was killed, tried again or came late."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text

from airflow_elastic.airflow_db.fencing import LeadershipLost
from airflow_elastic.airflow_db.leader import Leadership
from airflow_elastic.airflow_db.ledger_store import LedgerStore
from airflow_elastic.model.ledger import Charge, NodeBill, Posting, RunAccount, Use

BILL = NodeBill("uid-1", "node-1", "elastic", 3.6, started_ms=1000, accounted_ms=1000)
RUN = RunAccount("etl", "monday", 3, 2, 5, 5000, 2000, 900, 1, 1000, 9000)


@pytest.fixture
def token(database: Any) -> int:
    return Leadership("first", engine=database).acquire_or_renew(1000.0) or 0


@pytest.fixture
def ledger(database: Any) -> LedgerStore:
    return LedgerStore(engine=database)


def charge(node_ms: int, use: Use = Use.TASK, run: str = "monday", task: str = "load") -> tuple[Charge, float]:
    owner = ("etl", run) if run else ("", "")
    return Charge("uid-1", use, node_ms, *owner, task if use in (Use.TASK, Use.LOST) else ""), node_ms / 1000


def posting(begin: int | None, until: int, *charges: tuple[Charge, float], ended: bool = False) -> Posting:
    bill = replace(BILL, accounted_ms=until, ended_ms=until if ended else None)
    return Posting(bill, begin, charges or (charge(until - (begin or BILL.started_ms)),))


def test_charges_add_up_over_postings(ledger: LedgerStore, token: int) -> None:
    assert ledger.last_accounted_ms() is None
    assert ledger.post([posting(None, 1000, charge(0))], (), token) == {}
    assert ledger.standing_nodes() == [BILL]
    assert ledger.post([posting(1000, 5000, charge(3000), charge(1000, Use.WARM))], [RUN], token) == {}
    assert ledger.post([posting(5000, 9000, charge(4000), ended=True)], [RUN], token) == {}
    assert ledger.standing_nodes() == []
    assert ledger.last_accounted_ms() == 9000
    (run,) = ledger.runs()
    assert run.account == RUN
    assert dict(run.node_ms) == {Use.TASK: 7000, Use.WARM: 1000}
    assert (run.cost, run.wasted_cost, run.wasted_ms) == (8.0, 1.0, 1000)
    assert ledger.totals() == {Use.TASK: (7000, 7.0), Use.WARM: (1000, 1.0)}


def test_the_same_posting_twice_is_written_once(ledger: LedgerStore, token: int) -> None:
    """An answer was lost on the way: it is not known whether it was written, so it is posted again."""
    ledger.post([posting(None, 1000, charge(0))], (), token)
    again = posting(1000, 5000)
    assert ledger.post([again], (), token) == {}
    assert ledger.post([again], (), token) == {"uid-1": 5000}
    assert ledger.totals() == {Use.TASK: (4000, 4.0)}


def test_a_posting_that_leaves_a_gap_or_overlaps_is_refused_and_the_others_are_not(
    ledger: LedgerStore, token: int
) -> None:
    ledger.post([posting(None, 1000, charge(0))], (), token)
    other = Posting(NodeBill("uid-2", "n", "elastic", 1.0, 0, 500), None, ())
    assert ledger.post([posting(1500, 5000), other], (), token) == {"uid-1": 1000}
    assert ledger.post([posting(None, 5000)], (), token) == {"uid-1": 1000}
    assert {each.uid: each.accounted_ms for each in ledger.standing_nodes()} == {"uid-1": 1000, "uid-2": 500}
    assert ledger.post([Posting(replace(BILL, uid="never"), 700, ())], (), token) == {"never": None}


def test_work_that_was_lost_after_all_is_taken_off_its_task(ledger: LedgerStore, token: int) -> None:
    ledger.post([posting(None, 1000, charge(1000))], [RUN], token)
    ledger.post([posting(1000, 2000, charge(-1000), charge(1000, Use.LOST), charge(1000, Use.WARM))], (), token)
    assert dict(ledger.runs()[0].node_ms) == {Use.LOST: 1000, Use.WARM: 1000}
    assert ledger.runs()[0].wasted_ms == 2000


def test_nothing_of_a_stale_leader_is_written(database: Any, ledger: LedgerStore, token: int) -> None:
    ledger.post([posting(None, 1000, charge(0))], (), token)
    new = Leadership("second", engine=database).acquire_or_renew(1010.0)
    with pytest.raises(LeadershipLost):
        ledger.post([posting(1000, 5000)], [RUN], token)
    with pytest.raises(LeadershipLost):
        ledger.post([], [], token)
    assert ledger.totals() == {}
    assert ledger.runs() == []
    assert ledger.post([posting(1000, 5000)], (), new or 0) == {}


def test_runs_come_latest_first_and_of_one_dag_if_asked(ledger: LedgerStore, token: int) -> None:
    accounts = [replace(RUN, run_id=f"r{number}", last_ms=number) for number in range(5)]
    other = replace(RUN, dag_id="ml", last_ms=99)
    ledger.post([], [*accounts, other], token)
    assert [(run.account.dag_id, run.account.run_id) for run in ledger.runs(2)] == [("ml", "monday"), ("etl", "r4")]
    assert [run.account.run_id for run in ledger.runs(dag_id="etl")] == ["r4", "r3", "r2", "r1", "r0"]
    assert ledger.runs(dag_id="none") == []
    assert {each.run_id for each in ledger.run_accounts(3)} == {"r3", "r4", "monday"}
    ledger.post([], [replace(accounts[0], waits=77)], token)
    assert {each.run_id: each.waits for each in ledger.run_accounts(0)}["r0"] == 77


def test_names_that_no_database_takes_do_not_stop_the_ledger(ledger: LedgerStore, token: int) -> None:
    odd = "x\0\ud800" + "y" * 400
    posted = Posting(BILL, None, ((Charge("uid-1", Use.TASK, 10, odd, odd, odd), 1.0),))
    assert ledger.post([posted], [replace(RUN, dag_id=odd, run_id=odd)], token) == {}
    (run,) = ledger.runs()
    assert run.account.dag_id.startswith("x\ufffd?yyy")
    assert dict(run.node_ms) == {Use.TASK: 10}


def test_many_nodes_go_in_few_statements(ledger: LedgerStore, token: int) -> None:
    bills = [replace(BILL, uid=f"u{number}") for number in range(1200)]
    assert ledger.post([Posting(bill, None, ()) for bill in bills], (), token) == {}
    assert len(ledger.standing_nodes()) == 1200
    charges = [Posting(replace(bill, accounted_ms=2000), 1000, ((Charge(bill.uid, Use.WARM, 1000, "d", "r"), 1.0),))
               for bill in bills]  # fmt: skip
    assert ledger.post(charges, (), token) == {}
    assert ledger.totals() == {Use.WARM: (1_200_000, 1200.0)}


def test_without_our_tables_nothing_fails(database: Any, ledger: LedgerStore) -> None:
    try:
        with database.begin() as connection:
            connection.execute(text("ALTER TABLE elastic_ledger RENAME TO away_ledger"))
        fresh = LedgerStore(engine=database)
        assert "airflow db migrate" in fresh.missing_tables
        assert fresh.post([posting(None, 1)], (), 1) is None
        assert (fresh.runs(), fresh.totals(), fresh.standing_nodes(), fresh.run_accounts(0)) == ([], {}, [], [])
        assert fresh.last_accounted_ms() is None
    finally:
        with database.begin() as connection:
            connection.execute(text("ALTER TABLE away_ledger RENAME TO elastic_ledger"))
