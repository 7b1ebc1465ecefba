"""Are our own tables there? They come with ``airflow db migrate`` after the package was installed."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import inspect
from sqlalchemy.exc import DBAPIError

from airflow_elastic.airflow_db.database import temporary
from airflow_elastic.airflow_db.tables import metadata

__all__ = ["TablePresence"]

_LOOK_AGAIN_SECONDS = 5.0


class TablePresence:
    """Remembers for ever that the tables are there, and for some seconds that they are not."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._missing: tuple[str, ...] | None = None
        self._looked_at = 0.0

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the names of our tables that are not there.

        Raises:
            TemporaryError: the database does not answer.
        """
        if self._missing is None or (self._missing and time.monotonic() - self._looked_at > _LOOK_AGAIN_SECONDS):
            try:
                present = set(inspect(self._engine).get_table_names())
            except DBAPIError as error:
                raise temporary("looking for the tables of airflow-elastic", error) from error
            self._missing = tuple(sorted(metadata.tables.keys() - present))
            self._looked_at = time.monotonic()
        return self._missing

    @property
    def sentence(self) -> str:
        """Return what is missing and what to do about it; empty: nothing is."""
        if not (missing := self.missing):
            return ""
        return (
            f"Airflow's database lacks {len(missing)} table(s) of airflow-elastic ({', '.join(missing)}): "
            "nothing can be kept there until they exist; run: airflow db migrate"
        )
