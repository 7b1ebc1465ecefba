"""Runs that Airflow will create within the horizon, from the timetables themselves.

The timetable does the arithmetic (time zones, DST, data intervals), in the same steps as the scheduler: the first run
is what ``DagModel.next_dagrun*`` says, each further one follows from the one before. Each run's id is made by the
timetable too, so that what is prepared for a coming run is found again under the id of the real one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from sqlalchemy import select

from airflow_elastic.airflow_db.database import as_datetime, as_seconds
from airflow_elastic.airflow_db.structure import DagStructure

__all__ = ["MOST_RUNS_OF_A_DAG", "ComingRun", "ComingRuns"]

MOST_RUNS_OF_A_DAG = 200


@dataclass(frozen=True, slots=True)
class ComingRun:
    """A run that is not created yet."""

    run_id: str
    starts_at: float
    """Its ``run_after`` in Unix seconds; in the past where the scheduler has not come round to it."""


@dataclass(slots=True)
class _Series:
    """A DAG's coming runs, enumerated as far as the horizon has reached."""

    key: tuple[Any, ...]
    rest: Iterator[ComingRun]
    runs: list[ComingRun] = field(default_factory=list)
    ended: bool = False
    problem: str = ""

    def up_to(self, horizon: float) -> tuple[ComingRun, ...]:
        while not self.ended and len(self.runs) <= MOST_RUNS_OF_A_DAG:
            if self.runs and self.runs[-1].starts_at > horizon:
                break
            following = next(self.rest, None)
            if following is None:
                self.ended = True
            else:
                self.runs.append(following)
        return tuple(run for run in self.runs[:MOST_RUNS_OF_A_DAG] if run.starts_at <= horizon)


class ComingRuns:
    """Enumerates coming runs; a DAG's series is kept until its next run or its definition changes."""

    def __init__(self) -> None:
        self._series: dict[str, _Series] = {}
        self.problems: tuple[str, ...] = ()
        """One sentence for each DAG whose coming runs could not be worked out by the last ``read``."""

    def read(
        self, connection: Any, structures: Mapping[str, DagStructure], now: float, horizon: float
    ) -> dict[str, tuple[ComingRun, ...]]:
        """Return the coming runs of the given DAGs up to ``horizon`` (Unix seconds), by dag_id."""
        found: dict[str, tuple[ComingRun, ...]] = {}
        kept: dict[str, _Series] = {}
        problems: list[str] = []
        for row in connection.execute(_due_dags(horizon)).mappings():
            structure = structures.get(row["dag_id"])
            if structure is None or structure.timetable is None or not _may_be_scheduled(row):
                continue
            key = (structure.dag_hash, *(row[name] for name in _NEXT_RUN))
            series = self._series.get(structure.dag_id)
            if series is None or series.key != key:
                series = _Series(key, iter(()))
                series.rest = _enumerate(structure, dict(row), now, series)
            kept[structure.dag_id] = series
            if runs := series.up_to(horizon):
                found[structure.dag_id] = runs
            if series.problem:
                problems.append(series.problem)
        self._series, self.problems = kept, tuple(problems)
        return found


_NEXT_RUN = (
    "next_dagrun",
    "next_dagrun_data_interval_start",
    "next_dagrun_data_interval_end",
    "next_dagrun_create_after",
    "next_dagrun_partition_key",
    "next_dagrun_partition_date",
)


def _due_dags(horizon: float) -> Any:
    """Select DAGs that the scheduler would make a run of by ``horizon``: its own predicate, with a later time.

    A DAG with ``max_active_runs`` active runs (``exceeds_max_non_backfill``) is held back until one of them ends; when
    that is, the planner works out from the active runs. Leaving it out here would hide the next run of every DAG that
    allows one at a time, and with it the need to have nodes ready, until the moment it is created.
    """
    from airflow.models.dag import DagModel
    from sqlalchemy import false

    columns = DagModel.__table__.c
    return select(
        columns.dag_id,
        columns.timetable_partitioned,
        columns.allowed_run_types,
        *(columns[name] for name in _NEXT_RUN),
    ).where(
        columns.is_paused == false(),
        columns.is_stale == false(),
        columns.has_import_errors == false(),
        columns.max_active_runs > 0,
        columns.next_dagrun_create_after <= as_datetime(horizon),
    )


def _may_be_scheduled(row: Mapping[str, Any]) -> bool:
    """Tell whether the scheduler would not skip this DAG when its time has come."""
    allowed = row["allowed_run_types"]
    if allowed is not None and "scheduled" not in allowed:
        return False
    return row["next_dagrun_partition_key" if row["timetable_partitioned"] else "next_dagrun"] is not None


def _enumerate(structure: DagStructure, row: dict[str, Any], now: float, series: _Series) -> Iterator[ComingRun]:
    """Yield a DAG's runs one after the other; on an error of the timetable the series ends with a problem."""
    from airflow.models.dag import DagModel
    from airflow.serialization.decoders import decode_timetable
    from airflow.timetables.base import TimeRestriction

    try:
        timetable = decode_timetable(structure.timetable)
        info = timetable.next_run_info_from_dag_model(
            dag_model=DagModel(dag_id=structure.dag_id, **{name: row[name] for name in _NEXT_RUN})
        )
        # A timetable with a limit (@continuous) makes its next run only when the last has ended, at a time unknown.
        most = timetable.active_runs_limit or MOST_RUNS_OF_A_DAG + 1
        earliest, latest = _moment(structure.earliest), _moment(structure.latest)
        while info is not None and most > 0:
            info = _as_stored(info)
            starts_at = as_seconds(info.run_after) or 0.0
            yield ComingRun(_run_id(timetable, info), starts_at)
            most -= 1
            # Without catch-up Airflow jumps from a run that is overdue to the present; from one to come it does not.
            catchup = structure.catchup or starts_at > now
            info = timetable.next_dagrun_info_v2(
                last_dagrun_info=info, restriction=TimeRestriction(earliest, latest, catchup)
            )
    except Exception as error:  # a timetable is the user's code
        series.problem = (
            f"coming runs of DAG {structure.dag_id} are incomplete: its timetable failed with "
            f"{type(error).__name__}: {error}. The controller must be able to import the plugin that defines it."
        )


def _run_id(timetable: Any, info: Any) -> str:
    """Return the id that the scheduler will give the run; its fixed part where the timetable adds a random one."""
    from airflow.utils.types import DagRunType

    first, second = (
        timetable.generate_run_id(
            run_type=DagRunType.SCHEDULED,
            run_after=info.run_after,
            data_interval=info.data_interval,
            partition_key=info.partition_key,
        )
        for _ in range(2)
    )
    if first == second:
        return str(first)
    fixed = "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))
    return str(fixed.rpartition("__")[0] or fixed)


def _as_stored(info: Any) -> Any:
    """Return run information as it comes back from the database, in UTC: the scheduler chains from there."""
    from airflow._shared.timezones.timezone import coerce_datetime, utc
    from airflow.timetables.base import DataInterval

    def stored(moment: Any) -> Any:
        return None if moment is None else coerce_datetime(moment.astimezone(utc))

    interval = info.data_interval
    return info._replace(
        run_after=stored(info.run_after),
        data_interval=DataInterval(stored(interval.start), stored(interval.end)) if interval else None,
        partition_date=stored(info.partition_date),
    )


def _moment(seconds: float | None) -> Any:
    from airflow._shared.timezones.timezone import coerce_datetime

    return None if seconds is None else coerce_datetime(as_datetime(seconds))
