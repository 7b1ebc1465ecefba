"""Reads the metadata DB from outside Airflow: plain SQL on a read-only connection, no ORM, no lock held."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from airflow_elastic.errors import ConfigurationError, TemporaryError

__all__ = ["Database", "unix_seconds"]


def unix_seconds(value: object) -> float | None:
    """Return a database's timestamp (text in SQLite, a datetime in Postgres) as Unix seconds."""
    if value is None:
        return None
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


class Database:
    """A read-only connection; each query is a transaction of its own. Not for use by two threads."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Any = None
        scheme = urlsplit(url).scheme.split("+")[0]
        if scheme not in ("sqlite", "postgresql", "postgres"):
            raise ConfigurationError(f"database {scheme!r} is not supported by the demo: use sqlite or postgresql")
        self._is_sqlite = scheme == "sqlite"

    def rows(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run a SELECT with ``?`` as placeholder and return all rows.

        Raises:
            TemporaryError: no connection, a locked database, or a missing table.
        """
        try:
            if self._connection is None:
                self._connection = self._connect()
            if self._is_sqlite:
                return list(self._connection.execute(statement, tuple(parameters)).fetchall())
            with self._connection.cursor() as cursor:
                cursor.execute(statement.replace("?", "%s"), tuple(parameters))
                return list(cursor.fetchall())
        except Exception as error:
            if not isinstance(error, sqlite3.Error) and type(error).__module__.split(".")[0] != "psycopg2":
                raise
            self.close()
            raise TemporaryError(f"metadata DB: {error}") from None

    def close(self) -> None:
        """Close the connection; the next query opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> Any:
        if self._is_sqlite:
            path = self._url.split("///", 1)[1]
            return sqlite3.connect(
                f"file:{path}?mode=ro", uri=True, timeout=5, isolation_level=None, check_same_thread=False
            )
        from importlib import import_module

        psycopg2 = import_module("psycopg2")  # an optional extra

        parts = urlsplit(self._url)
        connection = psycopg2.connect(parts._replace(scheme="postgresql").geturl(), connect_timeout=5)
        connection.set_session(readonly=True, autocommit=True)
        return connection
