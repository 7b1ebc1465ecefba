"""What the controller keeps between its ticks and publishes for page and commands.

Every write carries the leader's fencing token and is refused by the database, in the same statement, once another
controller leads. Without our tables reads return nothing and writes do nothing; ``missing_tables`` says why.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from sqlalchemy import delete, insert, literal, select, update

from airflow_elastic.airflow_db.database import metadata_engine, transact
from airflow_elastic.airflow_db.fencing import LEADER_NAME, LeadershipLost, hold_lead, lost, token_is_valid
from airflow_elastic.airflow_db.presence import TablePresence
from airflow_elastic.airflow_db.tables import DecisionRow, LeaderRow, ProfileRow, ReservationRow, StatusRow
from airflow_elastic.model.reservation import Reservation, ReservationState

__all__ = ["KEPT_DECISIONS", "Decision", "LeadershipLost", "Store"]

KEPT_DECISIONS = 5_000
# Old decisions are cut off once in so many writes of new ones.
_CUT_EVERY = 50
_MOST_NAMES = 500
_DOCUMENT = "controller"


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision or refusal as it is kept."""

    at: float
    """Unix seconds."""
    kind: str
    """``slots``, ``nodes``, ``refusal``, ``reservation``, …"""
    about: str
    """The object: a node pool, an Airflow pool, a node, a run."""
    code: str
    """A ``ReasonCode``'s name."""
    sentence: str
    applied: bool
    """It was carried out; False: recommended or refused only."""


class Store:
    """Our tables as the controller, the page and the commands use them. All times are Unix seconds."""

    def __init__(self, *, engine: Any = None) -> None:
        self._engine = engine or metadata_engine()
        self._presence = TablePresence(self._engine)
        self._writes_until_cut = 0
        self._saved: tuple[int, dict[str, Reservation]] | None = None
        """The reservations as this process wrote them last, by id, and under which token."""

    @property
    def missing_tables(self) -> str:
        """Return what is missing and what to do about it, as one sentence; empty: all tables are there."""
        return self._presence.sentence

    def save_status(self, document: dict[str, Any], token: int) -> bool:
        """Publish the status document; False where our tables are missing.

        Raises:
            LeadershipLost: the token is stale, nothing was written.
            TemporaryError: the database does not answer.
        """
        return self._save_document(StatusRow, document, token, "publishing the status")

    def load_status(self) -> dict[str, Any] | None:
        """Return the document published last, or None."""
        return self._load_document(StatusRow, "reading the status")

    def save_profiles(self, document: dict[str, Any], token: int) -> bool:
        """Keep what was learnt (see ``save_status`` for result and errors)."""
        return self._save_document(ProfileRow, document, token, "saving the profiles")

    def load_profiles(self) -> dict[str, Any] | None:
        """Return what was learnt, or None."""
        return self._load_document(ProfileRow, "reading the profiles")

    def add_decisions(self, decisions: Sequence[Decision], token: int) -> bool:
        """Append decisions, all or none; the oldest beyond ``KEPT_DECISIONS`` go (see ``save_status`` for errors)."""
        if not decisions or self._presence.missing:
            return not self._presence.missing
        table = DecisionRow.__table__
        rows = [_storable(asdict(each)) for each in decisions]
        for row in rows:
            row["kind"], row["about"] = row["kind"][:32], row["about"][:500]

        def work(connection: Any) -> None:
            hold_lead(connection, token)
            connection.execute(insert(table), rows)
            if self._writes_until_cut <= 0:
                oldest = connection.execute(
                    select(table.c.id).order_by(table.c.id.desc()).offset(KEPT_DECISIONS).limit(1)
                ).scalar()
                if oldest is not None:
                    connection.execute(delete(table).where(table.c.id <= oldest, token_is_valid(token)))

        transact(self._engine, work, what="saving decisions")
        self._writes_until_cut = _CUT_EVERY if self._writes_until_cut <= 0 else self._writes_until_cut - 1
        return True

    def decisions(self, limit: int = 100, about: str | None = None) -> list[Decision]:
        """Return the latest decisions, newest first; with ``about`` only those on that object."""
        if self._presence.missing:
            return []
        table = DecisionRow.__table__
        query = select(*(table.c[each.name] for each in fields(Decision))).order_by(table.c.id.desc()).limit(limit)
        if about is not None:
            query = query.where(table.c.about == about)
        rows = transact(
            self._engine, lambda connection: connection.execute(query).mappings().all(), what="reading decisions"
        )
        return [Decision(**row) for row in rows]

    def save_reservations(self, reservations: Iterable[Reservation], token: int) -> bool:
        """Replace the reservations by these, all or nothing (see ``save_status`` for result and errors)."""
        if self._presence.missing:
            return False
        table = ReservationRow.__table__
        wanted = {each.id: each for each in reservations}
        # Thousands of coming runs have one each, and few change: only the difference to our own last write is written.
        known, self._saved = self._saved, None
        before = known[1] if known is not None and known[0] == token else None
        changed = {key: each for key, each in wanted.items() if before is None or before.get(key) != each}
        gone = [] if before is None else [key for key in before if key in changed or key not in wanted]

        def work(connection: Any) -> None:
            hold_lead(connection, token)
            if before is None:
                connection.execute(delete(table))
            for start in range(0, len(gone), _MOST_NAMES):
                connection.execute(delete(table).where(table.c.id.in_(gone[start : start + _MOST_NAMES])))
            if changed:
                connection.execute(insert(table), [_reservation_row(key, each) for key, each in changed.items()])

        transact(self._engine, work, what="saving reservations")
        self._saved = (token, wanted)
        return True

    def load_reservations(self) -> tuple[Reservation, ...]:
        """Return the reservations saved last; one in a state that this release does not know is left out.

        What it holds is found in the cluster, without an owner, and swept.
        """
        if self._presence.missing:
            return ()
        table = ReservationRow.__table__
        names = [each.name for each in fields(Reservation)]
        query = select(*(table.c[name] for name in names)).order_by(table.c.needed_at, table.c.id)
        rows = transact(
            self._engine, lambda connection: connection.execute(query).mappings().all(), what="reading reservations"
        )
        known = set(ReservationState)
        return tuple(
            Reservation(**{**row, "state": ReservationState(row["state"])}) for row in rows if row["state"] in known
        )

    def _save_document(self, model: Any, document: dict[str, Any], token: int, what: str) -> bool:
        if self._presence.missing:
            return False
        table = model.__table__
        row = {"saved_at": time.time(), "document": json.dumps(document, separators=(",", ":"))}

        def work(connection: Any) -> None:
            written = connection.execute(
                update(table).where(table.c.name == _DOCUMENT, token_is_valid(token)).values(**row)
            ).rowcount
            if written:
                return
            if connection.execute(select(table.c.name).where(table.c.name == _DOCUMENT)).first() is not None:
                raise lost(token)
            _fenced_insert(connection, table, {"name": _DOCUMENT, **row}, token)

        transact(self._engine, work, what=what)
        return True

    def _load_document(self, model: Any, what: str) -> dict[str, Any] | None:
        if self._presence.missing:
            return None
        table = model.__table__
        query = select(table.c.document).where(table.c.name == _DOCUMENT)
        text = transact(self._engine, lambda connection: connection.execute(query).scalar(), what=what)
        if text is None:
            return None
        try:
            document = json.loads(text)
        except ValueError:
            return None  # written by hand or cut off: the next tick writes it anew
        return document if isinstance(document, dict) else None


def _reservation_row(key: str, reservation: Reservation) -> dict[str, Any]:
    values = {each.name: getattr(reservation, each.name) for each in fields(Reservation)}
    return {**_storable(values), "id": key, "state": reservation.state.value}


def _storable(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row whose texts every database takes: PostgreSQL stores no NUL, none stores half a surrogate pair.

    Sentences quote what others wrote: errors of timetables, names in DAG files, answers of servers.
    """
    return {
        name: value.replace("\0", "\ufffd").encode(errors="replace").decode() if type(value) is str else value
        for name, value in row.items()
    }


def _fenced_insert(connection: Any, table: Any, row: dict[str, Any], token: int) -> None:
    """Insert one row if the token is the leader's, in one statement.

    Raises:
        LeadershipLost: it is not.
    """
    leader = LeaderRow.__table__.c
    values = select(*(literal(value, table.c[name].type) for name, value in row.items())).where(
        leader.name == LEADER_NAME, leader.token == token
    )
    if not connection.execute(insert(table).from_select(list(row), values.with_for_update(read=True))).rowcount:
        raise lost(token)
