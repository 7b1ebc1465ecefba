"""Predicted runs against the runs that Airflow's own scheduler code creates."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pendulum
import pytest
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, CronDataIntervalTimetable, CronTriggerTimetable, DeltaDataIntervalTimetable
from airflow_db_helpers import MakeReader, carrier, create_runs_as_scheduler, seconds, write_dags

from airflow_elastic.model.demand import RunPhase
from airflow_elastic.model.settings import ScalingRules, Settings

BERLIN = pendulum.timezone("Europe/Berlin")
DAY = 86_400.0


def pod_dag(dag_id: str, **options: Any) -> DAG:
    options = {"is_paused_upon_creation": False, "catchup": True, **options}
    with DAG(dag_id, **options) as dag:
        BashOperator(task_id="work", bash_command="true", executor_config=carrier(), pool="burst")
    return dag


def with_horizon(settings: Settings, horizon_seconds: float) -> Settings:
    return replace(settings, scaling=ScalingRules(horizon_seconds=horizon_seconds))


@pytest.mark.parametrize(
    ("name", "schedule"),
    [
        ("cron", "30 2 * * *"),
        ("trigger", CronTriggerTimetable("30 2 * * *", timezone=BERLIN)),
        ("interval", CronDataIntervalTimetable("30 2 * * *", timezone=BERLIN)),
        ("half_hours", CronDataIntervalTimetable("*/30 1-3 * * *", timezone=BERLIN)),
        ("delta", timedelta(hours=7)),
        ("delta_interval", DeltaDataIntervalTimetable(timedelta(hours=5))),
    ],
)
@pytest.mark.parametrize("start", [datetime(2026, 3, 27), datetime(2026, 10, 23)])
def test_predicted_runs_are_those_the_scheduler_creates_over_a_clock_change(
    session: Any, make_reader: MakeReader, settings: Settings, name: str, schedule: Any, start: datetime
) -> None:
    write_dags(session, pod_dag(name, schedule=schedule, start_date=pendulum.instance(start, tz=BERLIN)))
    begin = start.timestamp() - DAY
    predicted = make_reader(with_horizon(settings, 6 * DAY)).read(begin).runs
    assert len(predicted) >= 4
    assert {run.phase for run in predicted} == {RunPhase.COMING}

    real = create_runs_as_scheduler(session, name, len(predicted))
    assert [(run.run_id, run.starts_at) for run in predicted] == [
        (run.run_id, run.run_after.timestamp()) for run in real
    ]


def test_clock_changes_move_the_start_in_utc(session: Any, make_reader: MakeReader, settings: Settings) -> None:
    schedule = CronTriggerTimetable("0 6 * * *", timezone=BERLIN)
    write_dags(session, pod_dag("six", schedule=schedule, start_date=datetime(2026, 3, 28, tzinfo=BERLIN)))
    runs = make_reader(with_horizon(settings, 3 * DAY)).read(seconds(2026, 3, 27, 12)).runs
    assert [run.starts_at for run in runs] == [
        seconds(2026, 3, 28, 5),
        seconds(2026, 3, 29, 4),
        seconds(2026, 3, 30, 4),
    ]


def test_without_catchup_the_future_is_the_same(session: Any, make_reader: MakeReader, settings: Settings) -> None:
    write_dags(session, pod_dag("ahead", schedule="*/20 * * * *", start_date=datetime(2026, 1, 1), catchup=False))
    now = pendulum.now("UTC").timestamp()
    predicted = make_reader(with_horizon(settings, 7200)).read(now).runs
    assert len(predicted) in (5, 6, 7)
    real = create_runs_as_scheduler(session, "ahead", len(predicted))
    assert [run.run_id for run in predicted] == [run.run_id for run in real]


def test_an_overdue_run_is_coming_since_its_time(session: Any, make_reader: MakeReader, settings: Settings) -> None:
    write_dags(
        session, pod_dag("late", schedule="@daily", start_date=datetime(2026, 5, 1), end_date=datetime(2026, 5, 1))
    )
    (run,) = make_reader().read(seconds(2026, 5, 1, 0, 10)).runs
    assert (run.run_id, run.starts_at) == ("scheduled__2026-05-01T00:00:00+00:00", seconds(2026, 5, 1))


def test_a_run_that_was_created_is_coming_no_more(session: Any, make_reader: MakeReader, settings: Settings) -> None:
    write_dags(session, pod_dag("daily", schedule="@daily", start_date=datetime(2026, 5, 1)))
    reader = make_reader(with_horizon(settings, DAY))
    now = seconds(2026, 5, 1, 0, 0, 1)
    first, second = reader.read(now).runs
    assert (first.phase, second.phase) == (RunPhase.COMING, RunPhase.COMING)
    create_runs_as_scheduler(session, "daily", 1)
    active, coming = reader.read(now + 1).runs
    assert (active.run_id, active.phase) == (first.run_id, RunPhase.QUEUED)
    assert (coming.run_id, coming.phase) == (second.run_id, RunPhase.COMING)


@pytest.mark.parametrize(
    ("reason", "value"),
    [
        ("is_paused", True),
        ("is_stale", True),
        ("has_import_errors", True),
        ("allowed_run_types", ["manual"]),
        ("max_active_runs", 0),
    ],
)
def test_a_dag_that_the_scheduler_skips_gives_no_run(
    session: Any, make_reader: MakeReader, reason: str, value: Any
) -> None:
    from airflow.models.dag import DagModel

    write_dags(session, pod_dag("held", schedule="@hourly", start_date=datetime(2026, 5, 1)))
    reader = make_reader()
    assert len(reader.read(seconds(2026, 5, 1)).runs) == 7
    setattr(session.get(DagModel, "held"), reason, value)
    session.commit()
    assert reader.read(seconds(2026, 5, 1)).runs == ()


def test_the_next_run_is_seen_while_the_only_one_allowed_is_active(session: Any, make_reader: MakeReader) -> None:
    from airflow.models.dag import DagModel

    write_dags(session, pod_dag("single", schedule="@hourly", start_date=datetime(2026, 5, 1), max_active_runs=1))
    create_runs_as_scheduler(session, "single", 1)
    session.expire_all()
    assert session.get(DagModel, "single").exceeds_max_non_backfill
    runs = make_reader().read(seconds(2026, 5, 1, 0, 5)).runs
    assert [run.phase for run in runs[:2]] == [RunPhase.QUEUED, RunPhase.COMING]
    assert runs[1].starts_at == seconds(2026, 5, 1, 1)
    assert runs[1].shape.max_active_runs == 1


def test_endless_schedules_are_cut_off(session: Any, make_reader: MakeReader, settings: Settings) -> None:
    write_dags(
        session,
        pod_dag("always", schedule="@continuous", start_date=datetime(2026, 1, 1), max_active_runs=1),
        pod_dag("minutely", schedule="* * * * *", start_date=datetime(2026, 1, 1)),
        pod_dag("once", schedule="@once", start_date=datetime(2026, 1, 1)),
        pod_dag("by_hand", schedule=None, start_date=datetime(2026, 1, 1)),
    )
    runs = make_reader(with_horizon(settings, 30 * DAY)).read(pendulum.now("UTC").timestamp()).runs
    counts = {name: sum(run.dag_id == name for run in runs) for name in ("always", "minutely", "once", "by_hand")}
    assert counts == {"always": 1, "minutely": 200, "once": 1, "by_hand": 0}


def test_an_id_with_a_random_part_is_predicted_up_to_it(
    session: Any, make_reader: MakeReader, settings: Settings
) -> None:
    from airflow.sdk import CronPartitionTimetable

    schedule = CronPartitionTimetable("0 * * * *", timezone="UTC")
    write_dags(session, pod_dag("parts", schedule=schedule, start_date=datetime(2026, 5, 1)))
    predicted = make_reader(with_horizon(settings, 3 * 3600)).read(seconds(2026, 5, 1)).runs
    real = create_runs_as_scheduler(session, "parts", len(predicted))
    assert len(predicted) >= 3
    for run, created in zip(predicted, real, strict=True):
        assert created.run_id.startswith(run.run_id + "__")
        assert run.starts_at == created.run_after.timestamp()


def test_the_series_is_kept_until_its_next_run_changes(
    session: Any, make_reader: MakeReader, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.serialization import decoders

    decoded: list[object] = []
    real = decoders.decode_timetable
    monkeypatch.setattr(decoders, "decode_timetable", lambda var: decoded.append(var) or real(var))
    write_dags(session, pod_dag("kept", schedule="@hourly", start_date=datetime(2026, 5, 1)))
    decoded.clear()
    reader = make_reader()
    first = reader.read(seconds(2026, 5, 1)).runs
    later = reader.read(seconds(2026, 5, 1, 1)).runs
    assert len(decoded) == 1
    assert [run.run_id for run in later] == [*(run.run_id for run in first), "scheduled__2026-05-01T07:00:00+00:00"]


def test_a_timetable_that_fails_does_not_stop_the_others(
    session: Any, make_reader: MakeReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.timetables.trigger import CronTriggerTimetable as Core

    write_dags(
        session,
        pod_dag("bad", schedule="@hourly", start_date=datetime(2026, 5, 1)),
        pod_dag("good", schedule=timedelta(hours=1), start_date=datetime(2026, 5, 1)),
    )

    def fail(self: object, **_: object) -> None:
        raise RuntimeError("no moon tonight")

    monkeypatch.setattr(Core, "next_dagrun_info", fail)
    view = make_reader().read(seconds(2026, 5, 1))
    assert sum(run.dag_id == "bad" for run in view.runs) == 1
    assert sum(run.dag_id == "good" for run in view.runs) >= 6
    (problem,) = (problem for problem in view.problems if "bad" in problem)
    assert "no moon tonight" in problem
