"""The ledger's tables: each stretch of a node's time is written once, whatever was killed or tried again."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from sqlalchemy import and_, delete, func, insert, or_, select

from airflow_elastic.airflow_db.database import metadata_engine, transact
from airflow_elastic.airflow_db.fencing import hold_lead
from airflow_elastic.airflow_db.presence import TablePresence
from airflow_elastic.airflow_db.tables import LedgerNodeRow, LedgerRow, LedgerRunRow
from airflow_elastic.model.ledger import Charge, NodeBill, Posting, RunAccount, RunBill, Use

__all__ = ["LedgerStore"]

_CHUNK = 500
_LONGEST = dict.fromkeys(("uid", "name", "node_uid"), 253)
_LONGEST_NAME = 250
_NODES = LedgerNodeRow.__table__
_CHARGES = LedgerRow.__table__
_RUNS = LedgerRunRow.__table__
_WASTED = (Use.WARM.value, Use.LOST.value)


class LedgerStore:
    """Writes need the leader's fencing token. Without our tables reads return nothing and writes do nothing."""

    def __init__(self, *, engine: Any = None) -> None:
        self._engine = engine or metadata_engine()
        self._presence = TablePresence(self._engine)

    @property
    def missing_tables(self) -> str:
        """Return what is missing and what to do about it, as one sentence; empty: all tables are there."""
        return self._presence.sentence

    def post(self, postings: Sequence[Posting], runs: Iterable[RunAccount], token: int) -> dict[str, int | None] | None:
        """Write postings and the present accounts of runs, all in one transaction; None where our tables are missing.

        A posting that does not go on where the node's stored bill ends is left out; returned is for each such node what
        is stored as accounted for (None: nothing is stored of it).

        Raises:
            LeadershipLost: the token is stale, nothing was written.
            TemporaryError: the database does not answer; whether it was written is not known. Post the same again.
        """
        if self._presence.missing:
            return None
        rows = [{"id": _digest(each.dag_id, each.run_id), **_storable(asdict(each))} for each in runs]

        def work(connection: Any) -> dict[str, int | None]:
            hold_lead(connection, token)
            refused: dict[str, int | None] = {}
            for part in _chunks(postings):
                refused |= _post(connection, part)
            _replace(connection, _RUNS, rows)
            return refused

        return transact(self._engine, work, what="writing the ledger")

    def standing_nodes(self) -> list[NodeBill]:
        """Return the bills of the nodes that have not ended, as they are stored."""
        if self._presence.missing:
            return []
        query = select(*_NODES.c).where(_NODES.c.ended_ms.is_(None))
        return [NodeBill(**row) for row in self._read(query)]

    def last_accounted_ms(self) -> int | None:
        """Return how far any node is accounted for; None where there is no ledger yet."""
        if self._presence.missing:
            return None
        (row,) = self._read(select(func.max(_NODES.c.accounted_ms).label("latest")))
        return None if row["latest"] is None else int(row["latest"])

    def run_accounts(self, since_ms: int) -> list[RunAccount]:
        """Return the accounts of runs in which something happened since a moment."""
        if self._presence.missing:
            return []
        return [_account(row) for row in self._read(select(*_RUNS.c).where(_RUNS.c.last_ms >= since_ms))]

    def runs(self, limit: int = 100, dag_id: str | None = None) -> list[RunBill]:
        """Return the latest runs with what they used and cost, the latest first; with ``dag_id`` only that DAG's."""
        if self._presence.missing:
            return []
        query = select(*_RUNS.c).order_by(_RUNS.c.last_ms.desc(), _RUNS.c.id).limit(limit)
        if dag_id is not None:
            query = query.where(_RUNS.c.dag_id == dag_id)
        accounts = [_account(row) for row in self._read(query)]
        sums: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
        for part in _chunks(accounts):
            for row in self._read(_sums_of(part)):
                sums[row["dag_id"], row["run_id"]].append(row)
        return [_bill(each, sums[each.dag_id, each.run_id]) for each in accounts]

    def totals(self) -> dict[Use, tuple[int, float]]:
        """Return the node time and cost of everything in the ledger, by use."""
        if self._presence.missing:
            return {}
        sums = (func.sum(_CHARGES.c.node_ms).label("node_ms"), func.sum(_CHARGES.c.cost).label("cost"))
        rows = self._read(select(_CHARGES.c.use, *sums).group_by(_CHARGES.c.use))
        return {Use(row["use"]): (int(row["node_ms"]), float(row["cost"])) for row in rows if row["use"] in set(Use)}

    def _read(self, query: Any) -> list[Mapping[str, Any]]:
        return transact(
            self._engine, lambda connection: list(connection.execute(query).mappings()), what="reading the ledger"
        )


def _post(connection: Any, postings: Sequence[Posting]) -> dict[str, int | None]:
    uids = [each.bill.uid for each in postings]
    stored: dict[str, int] = dict(
        connection.execute(select(_NODES.c.uid, _NODES.c.accounted_ms).where(_NODES.c.uid.in_(uids))).all()
    )
    fitting = [each for each in postings if stored.get(each.bill.uid) == each.from_ms]
    added: dict[str, dict[str, Any]] = {}
    for posting in fitting:
        for charge, cost in posting.charges:
            _add(added, charge, cost, posting.bill)
    for part in _chunks(list(added)):
        for row in connection.execute(select(*_CHARGES.c).where(_CHARGES.c.id.in_(part))).mappings():
            added[row["id"]]["node_ms"] += row["node_ms"]
            added[row["id"]]["cost"] += row["cost"]
    # Work that was lost after all is taken off its task again, of which then nothing may be left.
    _replace(connection, _CHARGES, [row for row in added.values() if row["node_ms"]], gone=list(added))
    _replace(connection, _NODES, [_storable(asdict(each.bill)) for each in fitting], key="uid")
    done = {each.bill.uid for each in fitting}
    return {uid: stored.get(uid) for uid in uids if uid not in done}


def _add(added: dict[str, dict[str, Any]], charge: Charge, cost: float, bill: NodeBill) -> None:
    key = _digest(charge.node_uid, charge.use.value, charge.dag_id, charge.run_id, charge.task_id)
    row = added.setdefault(
        key,
        _storable(
            {
                "id": key, "node_uid": charge.node_uid, "node_pool": bill.node_pool, "use": charge.use.value,
                "dag_id": charge.dag_id, "run_id": charge.run_id, "task_id": charge.task_id, "node_ms": 0, "cost": 0.0,
                "last_ms": bill.accounted_ms,
            }
        ),
    )  # fmt: skip
    row["node_ms"] += charge.node_ms
    row["cost"] += cost
    row["last_ms"] = max(row["last_ms"], bill.accounted_ms)


def _replace(
    connection: Any, table: Any, rows: list[dict[str, Any]], key: str = "id", gone: Sequence[str] | None = None
) -> None:
    """Write rows whether they are there or not: two statements for hundreds of rows, the same on every database."""
    for part in _chunks([row[key] for row in rows] if gone is None else gone):
        connection.execute(delete(table).where(table.c[key].in_(part)))
    for part in _chunks(rows):
        connection.execute(insert(table), part)


def _sums_of(accounts: Sequence[RunAccount]) -> Any:
    table = _CHARGES.c
    owners = or_(*(and_(table.dag_id == each.dag_id, table.run_id == each.run_id) for each in accounts))
    sums = (func.sum(table.node_ms).label("node_ms"), func.sum(table.cost).label("cost"))
    return select(table.dag_id, table.run_id, table.use, *sums).where(owners).group_by(
        table.dag_id, table.run_id, table.use
    )  # fmt: skip


def _bill(account: RunAccount, sums: Iterable[Mapping[str, Any]]) -> RunBill:
    known = [row for row in sums if row["use"] in set(Use)]
    return RunBill(
        account,
        tuple(sorted((Use(row["use"]), int(row["node_ms"])) for row in known)),
        float(sum(row["cost"] for row in known)),
        float(sum(row["cost"] for row in known if row["use"] in _WASTED)),
    )


def _account(row: Mapping[str, Any]) -> RunAccount:
    return RunAccount(**{each.name: row[each.name] for each in fields(RunAccount)})


def _storable(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row that every database takes: names come from pods' annotations, which anybody may have written."""
    return {
        name: value.replace("\0", "\ufffd").encode(errors="replace").decode()[: _LONGEST.get(name, _LONGEST_NAME)]
        if isinstance(value, str)
        else value
        for name, value in row.items()
    }


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:32]


def _chunks(items: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (items[start : start + _CHUNK] for start in range(0, len(items), _CHUNK))
