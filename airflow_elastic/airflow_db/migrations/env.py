"""Alembic's environment: our tables only, in Airflow's database, under a version table of our own."""

from __future__ import annotations

from typing import Any

from airflow import settings
from alembic import context

from airflow_elastic.airflow_db.db_manager import VERSION_TABLE
from airflow_elastic.airflow_db.tables import metadata


def _is_ours(_object: Any, name: str | None, kind: str, _reflected: bool, _compared_to: Any) -> bool:
    """Keep autogenerate off every table that is not ours."""
    return kind != "table" or name in metadata.tables


def _configure(**where: Any) -> None:
    context.configure(
        target_metadata=metadata,
        version_table=VERSION_TABLE,
        include_object=_is_ours,
        compare_type=True,
        compare_server_default=True,
        **where,
    )
    with context.begin_transaction():
        context.run_migrations()


if context.is_offline_mode():
    _configure(url=settings.SQL_ALCHEMY_CONN, literal_binds=True, dialect_opts={"paramstyle": "named"})
else:
    with settings.engine.connect() as connection:
        # SQLite changes a column only by copying its table.
        _configure(connection=connection, render_as_batch=connection.dialect.name == "sqlite")
