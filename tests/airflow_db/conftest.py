from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airflow_db_helpers import SHAPE, SLOT, FixedProfiles, MakeReader, installed, migrate, plain_annotation
from support.postgres import temporary_postgres

from airflow_elastic.airflow_db.tables import metadata
from airflow_elastic.model.capacity_class import CapacityClass
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.settings import Mode, ScalingRules, Settings


@pytest.fixture
def settings() -> Settings:
    return Settings(
        node_pools=(NodePool("elastic", (("pool", "elastic"),), SHAPE),),
        classes=(
            CapacityClass("burst", ("elastic",), "burst", SLOT, evictable=True),
            CapacityClass("core", ("elastic",), "core", SLOT),
        ),
        mode=Mode.MANAGE,
        default_class="burst",
        scaling=ScalingRules(horizon_seconds=6 * 3600.0),
    )


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite database as `airflow db migrate` leaves it; tests take copies."""
    home = tmp_path_factory.mktemp("airflow-home")
    path = home / "airflow.db"
    migrate(home, f"sqlite:///{path}")
    return path


@pytest.fixture
def engine(migrated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An engine on a fresh copy of the migrated database, which is Airflow's own for the test."""
    path = tmp_path / "airflow.db"
    shutil.copy(migrated, path)
    yield from installed(f"sqlite:///{path}", monkeypatch)


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with temporary_postgres() as url:
        migrate(tmp_path_factory.mktemp("airflow-home-postgres"), url)
        yield url


@pytest.fixture
def postgres(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from sqlalchemy import text

    for made in installed(postgres_url, monkeypatch):
        yield made
        with made.begin() as connection:
            for table in metadata.tables:
                connection.execute(text(f"DELETE FROM {table}"))
            for table in ("task_instance", "dag_run", "serialized_dag", "dag_version", "dag"):
                connection.execute(text(f"DELETE FROM {table}"))
            connection.execute(text("DELETE FROM slot_pool WHERE pool <> 'default_pool'"))


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue("engine" if request.param == "sqlite" else "postgres")


@pytest.fixture
def session(engine: Any) -> Iterator[Any]:
    from sqlalchemy.orm import Session

    with Session(engine, expire_on_commit=False) as made:
        yield made


@pytest.fixture
def make_reader(engine: Any, settings: Settings) -> MakeReader:
    from airflow_elastic.airflow_db.reader import AirflowReader

    def make(current: Settings | None = None, profiles: Any = None) -> Any:
        return AirflowReader(
            lambda: current or settings, profiles or FixedProfiles(), engine=engine, parse_annotation=plain_annotation
        )

    return make
