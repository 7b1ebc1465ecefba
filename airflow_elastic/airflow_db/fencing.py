"""The fencing token as a condition of a statement: a leader that lost its place writes nothing."""

from __future__ import annotations

from typing import Any

from sqlalchemy import exists, select, update

from airflow_elastic.airflow_db.tables import LeaderRow
from airflow_elastic.errors import TemporaryError

__all__ = ["LEADER_NAME", "LeadershipLost", "hold_lead", "lost", "token_is_valid"]

LEADER_NAME = "controller"


class LeadershipLost(TemporaryError):
    """Another controller leads now: stop acting and stand by until the leadership is regained."""


def token_is_valid(token: int) -> Any:
    """Return the condition that ``token`` is the leader's, to go into the WHERE of the very statement that writes.

    The leader's row is locked for reading while the statement lasts, so that nobody takes over in between.
    """
    leader = LeaderRow.__table__.c
    return exists(
        select(leader.token).where(leader.name == LEADER_NAME, leader.token == token).with_for_update(read=True)
    )


def hold_lead(connection: Any, token: int) -> None:
    """Begin a transaction of many writes: as long as it lasts, nobody takes the lead from ``token``.

    The leader's row is written without a change, which locks it on every database, SQLite too; a take-over writes the
    same row and waits. One check then serves thousands of rows.

    Raises:
        LeadershipLost: the token is stale; nothing was written.
    """
    leader = LeaderRow.__table__
    held = update(leader).where(leader.c.name == LEADER_NAME, leader.c.token == token).values(token=leader.c.token)
    if not connection.execute(held).rowcount:
        raise lost(token)


def lost(token: int) -> LeadershipLost:
    """Return the error for a token that is stale."""
    return LeadershipLost(
        f"the controller's token {token} is no longer the leader's: another controller has taken over; "
        "this one writes nothing and stands by"
    )
