"""Our tables come with `airflow db migrate`, and the migrations describe the same tables as the models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect, text
from sqlalchemy.orm import Session

from airflow_elastic.airflow_db.db_manager import VERSION_TABLE, ElasticDBManager
from airflow_elastic.airflow_db.tables import metadata


@pytest.fixture
def manager(database: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    from airflow import settings

    monkeypatch.setattr(settings, "SQL_ALCHEMY_CONN", database.url.render_as_string(hide_password=False))
    with Session(database) as session:
        made = ElasticDBManager(session)
        yield made
        session.rollback()
        made.upgradedb()


def ours(database: Any) -> set[str]:
    return {name for name in inspect(database).get_table_names() if "elastic" in name}


def differences(database: Any) -> list[Any]:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with database.connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "version_table": VERSION_TABLE,
                "compare_type": True,
                "compare_server_default": True,
                "include_object": lambda _object, name, kind, *_: kind != "table" or name in metadata.tables,
            },
        )
        return list(compare_metadata(context, metadata))


def test_airflow_db_migrate_makes_the_tables(database: Any, manager: Any) -> None:
    assert ours(database) == {*metadata.tables, VERSION_TABLE}
    assert all(name.startswith("elastic_") for name in metadata.tables)
    assert manager.check_migration()
    assert differences(database) == []


def test_migrations_make_the_tables_of_the_models(database: Any, manager: Any) -> None:
    manager.downgrade("base")
    assert ours(database) == {VERSION_TABLE}
    assert not manager.check_migration()
    manager.session.rollback()
    manager.upgradedb(use_migration_files=True)
    assert ours(database) == {*metadata.tables, VERSION_TABLE}
    assert differences(database) == []
    by_migration = {name: indexes_and_columns(database, name) for name in metadata.tables}
    manager.session.rollback()
    manager.downgrade("base")
    metadata.create_all(database)
    assert {name: indexes_and_columns(database, name) for name in metadata.tables} == by_migration
    metadata.drop_all(database)


def test_the_ledger_comes_and_goes_with_its_own_revision(database: Any, manager: Any) -> None:
    ledger = {"elastic_ledger", "elastic_ledger_node", "elastic_ledger_run"}
    manager.downgrade("0001")
    assert ours(database) == {*metadata.tables, VERSION_TABLE} - ledger
    with database.begin() as connection:
        connection.execute(text("INSERT INTO elastic_profile VALUES ('kept', 1.0, '{}')"))
    manager.session.rollback()
    manager.upgradedb(use_migration_files=True)
    assert ours(database) == {*metadata.tables, VERSION_TABLE}
    assert differences(database) == []
    with database.begin() as connection:
        assert connection.execute(text("SELECT name FROM elastic_profile")).scalars().all() == ["kept"]


def indexes_and_columns(database: Any, table: str) -> tuple[Any, ...]:
    found = inspect(database)
    return (
        [(each["name"], str(each["type"]), each["nullable"]) for each in found.get_columns(table)],
        sorted((each["name"], tuple(each["column_names"])) for each in found.get_indexes(table)),
        found.get_pk_constraint(table)["name"],
    )


def test_the_manager_knows_its_latest_revision(manager: Any) -> None:
    heads = manager.get_script_object().get_heads()
    assert list(manager.revision_heads_map.values())[-1:] == list(heads)
    with pytest.raises(ValueError, match="from_revision"):
        manager.downgrade("base", from_revision="0001")


def test_a_downgrade_can_be_shown_as_sql(manager: Any, capsys: pytest.CaptureFixture[str]) -> None:
    manager.downgrade("base", from_revision="0001", show_sql_only=True)
    assert "DROP TABLE elastic_reservation" in capsys.readouterr().out


def test_airflow_s_own_drop_takes_ours_along(database: Any, manager: Any) -> None:
    with database.begin() as connection:
        manager.drop_tables(connection)
        manager.session.commit()
    assert ours(database) <= {VERSION_TABLE}


def test_airflow_finds_the_manager_and_accepts_it() -> None:
    from airflow.utils.db_manager import RunDBManager

    found = RunDBManager()
    assert any(each.__name__ == "ElasticDBManager" for each in found._managers)
    found.validate()


def test_migrations_travel_with_the_package() -> None:
    folder = Path(ElasticDBManager.migration_dir)
    package = Path(__file__).resolve().parents[2] / "airflow_elastic"
    assert folder.is_relative_to(package)
    for path in (folder / "env.py", folder / "script.py.mako", Path(ElasticDBManager.alembic_file)):
        assert path.is_file()
