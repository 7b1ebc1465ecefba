"""Short transactions on Airflow's metadata database, with bounded retries and errors that say what to do."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

from sqlalchemy.exc import DBAPIError

from airflow_elastic.errors import TemporaryError

__all__ = ["as_datetime", "as_seconds", "metadata_engine", "read_snapshot", "temporary", "transact"]

Result = TypeVar("Result")

_ATTEMPTS = 3
# SQLite has one writer for the whole file; Airflow's own writes last some milliseconds.
_PAUSE_SECONDS = 0.05


def metadata_engine() -> Any:
    """Return the engine that Airflow itself uses in this process."""
    from airflow import settings

    if settings.engine is None:
        settings.configure_orm()
    return settings.engine


def transact(engine: Any, work: Callable[[Any], Result], *, what: str) -> Result:
    """Run ``work(connection)`` in one transaction; tried again where another writer holds the database.

    ``what`` names the doing for the error message. ``work`` may run more than once and must not keep state of a failed
    attempt.

    Raises:
        TemporaryError: the database does not answer, or stays locked.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with engine.begin() as connection:
                return work(connection)
        except DBAPIError as error:
            if attempt < _ATTEMPTS and _is_transient(error):
                time.sleep(_PAUSE_SECONDS * attempt)
                continue
            raise temporary(what, error) from error
    raise AssertionError("unreachable")  # pragma: no cover


def read_snapshot(engine: Any, work: Callable[[Any], Result], *, what: str) -> Result:
    """Run several queries of ``work(connection)`` on one and the same state of the database (see ``transact``).

    Otherwise a run that starts or ends between two queries would be seen without its tasks, or not at all.

    Raises:
        TemporaryError: the database does not answer.
    """
    if engine.dialect.name == "sqlite":

        def within(connection: Any) -> Result:
            # The driver begins a transaction for writes only.
            connection.exec_driver_sql("BEGIN")
            return work(connection)

        return transact(engine, within, what=what)
    return transact(engine.execution_options(isolation_level="REPEATABLE READ"), work, what=what)


def temporary(what: str, error: DBAPIError) -> TemporaryError:
    """Return the error to raise for a database that refused ``what``."""
    cause = " ".join(str(error.orig or error).split())[:300]
    return TemporaryError(
        f"{what} failed: Airflow's metadata database answered {cause!r}. The last good state stays in force and it is "
        "tried again; if this lasts, check the database and [database] sql_alchemy_conn."
    )


def _is_transient(error: DBAPIError) -> bool:
    text = str(error.orig).lower()
    return error.connection_invalidated or any(
        word in text for word in ("locked", "deadlock", "could not serialize", "lock timeout", "lock wait timeout")
    )


def as_seconds(moment: datetime | None) -> float | None:
    """Return a moment of the database as Unix seconds; one without a time zone is UTC."""
    if moment is None:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def as_datetime(seconds: float) -> datetime:
    """Return Unix seconds as the moment with time zone that Airflow's columns take."""
    return datetime.fromtimestamp(seconds, tz=UTC)
