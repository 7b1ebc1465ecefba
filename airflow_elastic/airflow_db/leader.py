"""One leader among the controllers: a row with an expiry and a token that grows with each new leader.

Two controllers whose clocks differ by more than the time to live may take the row from one another; the token still
lets only the later one write. An expiry in the far future (the clock was set back since) does not lock the others out:
a row that nobody renews for longer than the time to live is free too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from sqlalchemy import insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from airflow_elastic.airflow_db.database import metadata_engine, transact
from airflow_elastic.airflow_db.fencing import LEADER_NAME, LeadershipLost
from airflow_elastic.airflow_db.presence import TablePresence
from airflow_elastic.airflow_db.tables import LeaderRow

__all__ = ["Leadership", "LeadershipLost"]


_PATIENCE = 1.5
"""In times to live: so long, on our own monotonic clock, a leader may leave its row unrenewed whatever its expiry."""


class Leadership:
    """This process's candidacy. ``holder`` names it to people: host and process id."""

    def __init__(
        self,
        holder: str,
        ttl_seconds: float = 10.0,
        *,
        engine: Any = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.holder = holder[:250]
        self.ttl_seconds = ttl_seconds
        self.token: int | None = None
        """The token while this process leads, as far as it knows; None: it does not."""
        self._engine = engine or metadata_engine()
        self._presence = TablePresence(self._engine)
        self._monotonic = monotonic
        self._row: tuple[int, float] | None = None
        """(token, renewed at) of another leader as seen last."""
        self._row_since = 0.0

    @property
    def missing_tables(self) -> str:
        """Return why nobody can lead (our tables are not there) and what to do; empty: they are."""
        return self._presence.sentence

    def acquire_or_renew(self, now: float) -> int | None:
        """Renew the leadership, or take it when nobody holds it; return the token, None while another leads.

        Call it more often than every ``ttl_seconds``.

        Raises:
            TemporaryError: the database does not answer; the token may still be valid until the time to live is over.
        """
        if self._presence.missing:
            self.token = None
            return None
        self.token = transact(
            self._engine, lambda connection: self._renew(connection, now) or self._take(connection, now),
            what="renewing the leadership of the controller",
        )  # fmt: skip
        return self.token

    def release(self) -> None:
        """Give the leadership up, so that a stand-by need not wait for its end; harmless when it is not held.

        Raises:
            TemporaryError: the database does not answer; the leadership then ends by its time to live.
        """
        token, self.token = self.token, None
        if token is None:
            return
        leader = LeaderRow.__table__
        statement = (
            update(leader)
            .where(leader.c.name == LEADER_NAME, leader.c.token == token)
            .values(token=leader.c.token + 1, holder="", expires_at=0.0)
        )
        transact(
            self._engine, lambda connection: connection.execute(statement), what="releasing the leadership"
        )  # fmt: skip

    def _renew(self, connection: Any, now: float) -> int | None:
        if self.token is None:
            return None
        leader = LeaderRow.__table__
        renewed = connection.execute(
            update(leader)
            .where(leader.c.name == LEADER_NAME, leader.c.token == self.token)
            .values(renewed_at=now, expires_at=now + self.ttl_seconds)
        ).rowcount
        return self.token if renewed else None

    def _take(self, connection: Any, now: float) -> int | None:
        leader = LeaderRow.__table__
        row = connection.execute(
            select(leader.c.token, leader.c.renewed_at).where(leader.c.name == LEADER_NAME)
        ).first()
        # A process of the same name is this one's predecessor (a container's process id stays the same): it is dead,
        # and should it not be, the new token fences it off.
        is_free = or_(leader.c.expires_at <= now, leader.c.holder == self.holder)
        if self._is_abandoned(row):
            is_free = or_(is_free, leader.c.renewed_at == row.renewed_at)
        taken = connection.execute(
            update(leader)
            .where(leader.c.name == LEADER_NAME, is_free)
            .values(holder=self.holder, token=leader.c.token + 1, renewed_at=now, expires_at=now + self.ttl_seconds)
        ).rowcount
        if taken:
            self._row = None
            return int(connection.execute(select(leader.c.token).where(leader.c.name == LEADER_NAME)).scalar_one())
        if row is not None:
            return None
        try:
            with connection.begin_nested():
                connection.execute(
                    insert(leader).values(
                        name=LEADER_NAME, holder=self.holder, token=1, renewed_at=now, expires_at=now + self.ttl_seconds
                    )
                )
        except IntegrityError:
            return None  # another process was faster
        return 1

    def _is_abandoned(self, row: Any) -> bool:
        """Tell whether another leader's row has stood unchanged for longer than a living leader leaves it."""
        seen = None if row is None else (int(row.token), float(row.renewed_at))
        if seen is None or seen != self._row:
            self._row, self._row_since = seen, self._monotonic()
            return False
        return self._monotonic() - self._row_since > _PATIENCE * self.ttl_seconds
