"""One leader among the controllers: a row with an expiry and a token that grows with each new leader.

Two controllers whose clocks differ by more than the time to live may take the row from one another; the token still
lets only the later one write.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from airflow_elastic.airflow_db.database import metadata_engine, transact
from airflow_elastic.airflow_db.fencing import LEADER_NAME, LeadershipLost
from airflow_elastic.airflow_db.presence import TablePresence
from airflow_elastic.airflow_db.tables import LeaderRow

__all__ = ["Leadership", "LeadershipLost"]


class Leadership:
    """This process's candidacy. ``holder`` names it to people: host and process id."""

    def __init__(self, holder: str, ttl_seconds: float = 10.0, *, engine: Any = None) -> None:
        self.holder = holder[:250]
        self.ttl_seconds = ttl_seconds
        self.token: int | None = None
        """The token while this process leads, as far as it knows; None: it does not."""
        self._engine = engine or metadata_engine()
        self._presence = TablePresence(self._engine)

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
        # A process of the same name is this one's predecessor (a container's process id stays the same): it is dead,
        # and should it not be, the new token fences it off.
        taken = connection.execute(
            update(leader)
            .where(leader.c.name == LEADER_NAME, or_(leader.c.expires_at <= now, leader.c.holder == self.holder))
            .values(holder=self.holder, token=leader.c.token + 1, renewed_at=now, expires_at=now + self.ttl_seconds)
        ).rowcount
        if taken:
            return int(connection.execute(select(leader.c.token).where(leader.c.name == LEADER_NAME)).scalar_one())
        if connection.execute(select(leader.c.token).where(leader.c.name == LEADER_NAME)).first() is not None:
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
