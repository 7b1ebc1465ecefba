"""The fencing token as a condition of a statement: a leader that lost its place writes nothing."""

from __future__ import annotations

from typing import Any

from sqlalchemy import exists, select

from airflow_elastic.airflow_db.tables import LeaderRow
from airflow_elastic.errors import TemporaryError

__all__ = ["LEADER_NAME", "LeadershipLost", "token_is_valid"]

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
