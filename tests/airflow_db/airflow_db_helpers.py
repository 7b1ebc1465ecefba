"""What the tests of this folder share: Airflow databases, DAGs written and runs created by Airflow's own code."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from airflow_elastic.model.demand import DurationEstimate, RunAnnotation
from airflow_elastic.model.resources import Resources
from airflow_elastic.model.settings import Settings

MakeReader = Callable[..., Any]

SHAPE = Resources.parse({"cpu": "4", "memory": "8Gi", "pods": 20})
SLOT = Resources.parse({"cpu": "1", "memory": "1Gi"})


def seconds(*moment: int) -> float:
    return datetime(*moment, tzinfo=UTC).timestamp()


def carrier(capacity_class: str = "burst", **requests: str) -> dict[str, Any]:
    return {"elastic": {"class": capacity_class, "requests": requests or {"cpu": "500m", "memory": "1Gi"}}}


class FixedProfiles:
    """What every task takes: 100 s; every mapped task is 4 wide."""

    def __init__(self, seconds: float = 100.0, width: int = 4) -> None:
        self.seconds, self.mapped = seconds, width

    def estimate(self, dag_id: str, task_id: str, capacity_class: str) -> DurationEstimate:
        return DurationEstimate(self.seconds, self.seconds, self.seconds, 3)

    def width(self, dag_id: str, task_id: str) -> int:
        return self.mapped


def plain_annotation(raw: object, settings: Settings) -> RunAnnotation:
    return RunAnnotation(nodes=int(dict(raw)["nodes"]))  # type: ignore[call-overload]


def migrate(home: Path, url: str, *command: str) -> str:
    """Run `airflow db …` as an administrator does, on a database of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "airflow", "db", *(command or ("migrate",))],
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW__")},
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": url,
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        },
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def metadata_engine_of(url: str) -> Any:
    from airflow.utils.orm_event_handlers import setup_event_handlers
    from sqlalchemy import create_engine

    engine = create_engine(url)
    setup_event_handlers(engine)
    return engine


def installed(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from airflow import settings as airflow_settings
    from sqlalchemy.orm import scoped_session, sessionmaker

    made = metadata_engine_of(url)
    monkeypatch.setattr(airflow_settings, "engine", made)
    factory = sessionmaker(bind=made, autocommit=False, autoflush=False, expire_on_commit=False)
    monkeypatch.setattr(airflow_settings, "Session", scoped_session(factory))
    yield made
    airflow_settings.Session.remove()
    made.dispose()


def write_dags(session: Any, *dags: Any) -> None:
    """Write DAGs as the dag-processor does after parsing a file."""
    from airflow.dag_processing.collection import update_dag_parsing_results_in_db
    from airflow.models.dagbundle import DagBundleModel
    from airflow.serialization.serialized_objects import LazyDeserializedDAG

    if session.get(DagBundleModel, "testing") is None:
        session.add(DagBundleModel(name="testing"))
        session.flush()
    for dag in dags:
        dag.relative_fileloc = f"{dag.dag_id}.py"
    # Airflow writes a changed DAG at most every 30 s.
    with mock.patch.dict(os.environ, {"AIRFLOW__CORE__MIN_SERIALIZED_DAG_UPDATE_INTERVAL": "0"}):
        update_dag_parsing_results_in_db(
            "testing", None, [LazyDeserializedDAG.from_dag(dag) for dag in dags], {}, None, set(), session=session
        )
    session.commit()


def create_runs_as_scheduler(session: Any, dag_id: str, count: int) -> list[Any]:
    """Let the scheduler's own code create a DAG's next runs, one after the other, whatever the clock says."""
    from airflow.jobs.job import Job
    from airflow.jobs.scheduler_job_runner import SchedulerJobRunner
    from airflow.models.dag import DagModel
    from airflow.models.dagrun import DagRun
    from sqlalchemy import select

    runner = SchedulerJobRunner(job=Job())
    for _ in range(count):
        model = session.scalar(select(DagModel).where(DagModel.dag_id == dag_id))
        model.exceeds_max_non_backfill = False
        runner._create_dag_runs([model], session)
        session.commit()
    return list(session.scalars(select(DagRun).where(DagRun.dag_id == dag_id).order_by(DagRun.run_after)))


def start_run(session: Any, dag_id: str, run_id: str, *, state: str = "running", **options: Any) -> Any:
    """Create a run by hand, with its task instances, as the API does."""
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.utils.types import DagRunTriggeredByType, DagRunType

    dag = SerializedDagModel.get_dag(dag_id, session=session)
    run = dag.create_dagrun(
        **{
            "run_id": run_id,
            "run_after": datetime(2026, 5, 1, 11, tzinfo=UTC),
            "run_type": DagRunType.MANUAL,
            "triggered_by": DagRunTriggeredByType.REST_API,
            "state": state,
            "start_date": None if state == "queued" else datetime(2026, 5, 1, 11, tzinfo=UTC),
            "session": session,
            **options,
        }
    )
    session.commit()
    return run
