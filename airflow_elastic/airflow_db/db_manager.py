"""Brings our tables along with Airflow's own: found through the provider info by ``airflow db migrate``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow.utils.db_manager import BaseDBManager

from airflow_elastic.airflow_db.tables import metadata

__all__ = ["VERSION_TABLE", "ElasticDBManager"]

VERSION_TABLE = "alembic_version_elastic"
_HERE = Path(__file__).resolve().parent


class ElasticDBManager(BaseDBManager):
    """Airflow's manager for the tables ``elastic_*``."""

    metadata = metadata
    version_table_name = VERSION_TABLE
    migration_dir = (_HERE / "migrations").as_posix()
    alembic_file = (_HERE / "alembic.ini").as_posix()
    # `airflow db reset` drops our tables along with Airflow's.
    supports_table_dropping = True
    revision_heads_map = {"0.1.0": "0002"}  # noqa: RUF012 - the attribute that Airflow's base class defines

    def downgrade(self, to_revision: str, from_revision: str | None = None, show_sql_only: bool = False) -> None:
        """Take our tables back to a revision; ``base`` removes them.

        Raises:
            ValueError: ``from_revision`` is given without ``show_sql_only``.
        """
        if from_revision and not show_sql_only:
            raise ValueError("from_revision only makes sense with show_sql_only; a real downgrade starts where it is")
        from airflow.utils.db import DBLocks, create_global_lock
        from alembic import command

        config: Any = self.get_alembic_config()
        with create_global_lock(session=self.session, lock=DBLocks.MIGRATIONS):
            if show_sql_only:
                start = from_revision or self.get_current_revision()
                command.downgrade(config, revision=f"{start}:{to_revision}", sql=True)
            else:
                self.log.info("Taking the tables of airflow-elastic back to revision %s", to_revision)
                command.downgrade(config, revision=to_revision)
