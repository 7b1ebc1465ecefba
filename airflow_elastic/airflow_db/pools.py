"""Airflow's pools: their occupancy, and the one statement that sets their slots.

The scheduler locks all pool rows without waiting each time it queues tasks: a lock that we hold on any row stops all
queuing. So a write is one statement in autocommit, issued only for a change, and gives up soon where it would wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

from sqlalchemy import func, insert, select, text, true, update
from sqlalchemy.exc import DBAPIError, IntegrityError

from airflow_elastic.airflow_db.database import metadata_engine, temporary
from airflow_elastic.airflow_db.fencing import token_is_valid
from airflow_elastic.model.snapshot import AirflowPool

__all__ = ["PoolChange", "ensure_pool", "read_pools", "write_slots"]

_LOCK_WAIT_MILLISECONDS = 500
_COUNTED = ("running", "queued", "deferred", "scheduled")


class PoolChange(StrEnum):
    """What ``ensure_pool`` had to do."""

    NOTHING = "nothing"
    CREATED = "created"
    COUNTS_DEFERRED = "counts deferred tasks now"
    """The pool was there but did not count deferred tasks, whose pods take room all the same."""


def read_pools(connection: Any) -> tuple[AirflowPool, ...]:
    """Return all Airflow pools with the slots that their task instances take, by state."""
    from airflow.models.pool import Pool
    from airflow.models.taskinstance import TaskInstance

    task = TaskInstance.__table__.c
    taken: dict[str, dict[str, int]] = {}
    for pool, state, slots in connection.execute(
        select(task.pool, task.state, func.sum(task.pool_slots))
        .where(task.state.in_(_COUNTED))
        .group_by(task.pool, task.state)
    ):
        taken.setdefault(pool, {})[state] = int(slots)
    columns = Pool.__table__.c
    return tuple(
        AirflowPool(name=name, slots=slots, include_deferred=bool(include_deferred), **taken.get(name, {}))
        for name, slots, include_deferred in connection.execute(
            select(columns.pool, columns.slots, columns.include_deferred).order_by(columns.pool)
        )
    )


def write_slots(airflow_pool: str, slots: int, *, token: int | None = None, engine: Any = None) -> bool:
    """Set a pool's slots; return whether they changed.

    With a fencing ``token`` the same statement checks that it is still the leader's: a stale one changes nothing.

    Raises:
        TemporaryError: the database does not answer, or somebody holds the pool's row for longer than half a second.
    """
    from airflow.models.pool import Pool

    columns = Pool.__table__.c
    statement = (
        update(Pool.__table__).where(columns.pool == airflow_pool, columns.slots != slots).values(slots=int(slots))
    )
    if token is not None:
        statement = statement.where(token_is_valid(token))
    with _autocommit(
        engine or metadata_engine(), f"writing {slots} slots to Airflow pool {airflow_pool}"
    ) as connection:
        return bool(connection.execute(statement).rowcount)


def ensure_pool(airflow_pool: str, slots: int, description: str, *, engine: Any = None) -> PoolChange:
    """Create a pool that is missing, counting deferred tasks; of one that is there only that counting is set.

    Raises:
        TemporaryError: the database does not answer.
    """
    from airflow.models.pool import Pool

    table = Pool.__table__
    with _autocommit(engine or metadata_engine(), f"creating Airflow pool {airflow_pool}") as connection:
        counts = connection.execute(select(table.c.include_deferred).where(table.c.pool == airflow_pool)).scalar()
        if counts is None:
            try:
                connection.execute(
                    insert(table).values(
                        pool=airflow_pool, slots=int(slots), description=description, include_deferred=True
                    )
                )
            except IntegrityError:
                return PoolChange.NOTHING  # another process was faster
            return PoolChange.CREATED
        if counts:
            return PoolChange.NOTHING
        changed = connection.execute(
            update(table)
            .where(table.c.pool == airflow_pool, table.c.include_deferred != true())
            .values(include_deferred=True)
        ).rowcount
        return PoolChange.COUNTS_DEFERRED if changed else PoolChange.NOTHING


@contextmanager
def _autocommit(engine: Any, what: str) -> Iterator[Any]:
    """Give a connection on which every statement is its own transaction and waits for no lock for long."""
    try:
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            if connection.dialect.name != "postgresql":
                yield connection
                return
            connection.execute(text(f"SET lock_timeout = {_LOCK_WAIT_MILLISECONDS}"))
            try:
                yield connection
            finally:
                # The connection goes back to Airflow's pool as it was.
                if not connection.invalidated:
                    connection.execute(text("RESET lock_timeout"))
    except DBAPIError as error:
        raise temporary(what, error) from error
