"""The metadata database as the planner sees it: coming and active runs of DAGs that need nodes, and Airflow's pools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from airflow_elastic.airflow_db.coming_runs import ComingRun, ComingRuns
from airflow_elastic.airflow_db.dag_source import DagSource
from airflow_elastic.airflow_db.database import metadata_engine, read_snapshot
from airflow_elastic.airflow_db.existing_runs import ExistingRun, read_runs
from airflow_elastic.airflow_db.history import read_history
from airflow_elastic.airflow_db.kept_instances import KeptInstances
from airflow_elastic.airflow_db.pools import read_pools
from airflow_elastic.airflow_db.shapes import ProfileSource, class_pools, dag_shape
from airflow_elastic.airflow_db.structure import DagStructure
from airflow_elastic.model.demand import DagShape, Run, RunAnnotation, RunPhase, TaskInstance
from airflow_elastic.model.settings import Settings
from airflow_elastic.model.snapshot import AirflowPool

__all__ = ["AirflowReader", "AirflowView"]

AnnotationParser = Callable[[object, Settings], RunAnnotation]

# Durations are learnt with every finished task; a shape follows them in steps of this, not all shapes in one read.
_SHAPE_SECONDS = 30.0
_SHAPES_A_READ = 50


@dataclass(frozen=True, slots=True)
class AirflowView:
    """What one read found."""

    runs: tuple[Run, ...]
    """Active, queued and coming runs of every DAG with a task that may need a node."""
    airflow_pools: tuple[AirflowPool, ...]
    problems: tuple[str, ...]
    """A sentence for each thing that could not be read; the rest is there."""


@dataclass(frozen=True, slots=True)
class _Shaped:
    structure: DagStructure
    settings: Settings
    made_at: float
    shape: DagShape


@dataclass(frozen=True, slots=True)
class _Made:
    """Runs, and what they were made from."""

    source: tuple[Any, ...]
    runs: tuple[Run, ...]

    def again(self, source: tuple[Any, ...], make: Callable[..., tuple[Run, ...]]) -> _Made:
        return self if self.source == source else _Made(source, make(*source))


_NOTHING_MADE = _Made((), ())


class AirflowReader:
    """Reads Airflow's database. Keeps caches between reads; one thread at a time may use it."""

    def __init__(
        self,
        settings_provider: Callable[[], Settings],
        profiles: ProfileSource | Callable[[], ProfileSource],
        *,
        engine: Any = None,
        parse_annotation: AnnotationParser | None = None,
    ) -> None:
        """Read under the settings that the provider returns at each read.

        ``profiles`` may be a function, for profiles that are replaced as they grow.
        """
        self._settings_provider = settings_provider
        self._profiles = profiles
        self._engine = engine or metadata_engine()
        self._parse_annotation = parse_annotation or _configured_parser()
        self._source = DagSource()
        self._coming = ComingRuns()
        self._instances = KeptInstances()
        self._shapes: dict[tuple[str, bool], _Shaped] = {}
        self._active: dict[tuple[str, str], _Made] = {}
        self._planned: dict[str, _Made] = {}
        self._made_anew = 0

    def read(self, now: float) -> AirflowView:
        """Return what the database says at ``now`` (Unix seconds).

        Raises:
            TemporaryError: the database does not answer.
        """
        settings = self._settings_provider()
        return read_snapshot(
            self._engine, lambda connection: self._read(connection, settings, now), what="reading runs and pools"
        )

    def history(self, now: float, limit_days: float = 30.0) -> list[tuple[str, str, float, float]]:
        """Return (dag_id, task_id, seconds, finished at) of past successes in DAGs that need nodes, oldest first.

        Raises:
            TemporaryError: the database does not answer.
        """
        settings = self._settings_provider()

        def work(connection: Any) -> list[tuple[str, str, float, float]]:
            self._source.refresh(connection, now)
            return list(read_history(connection, self._relevant(settings).keys(), now, limit_days))

        return read_snapshot(self._engine, work, what="reading the history of tasks")

    def _relevant(self, settings: Settings) -> dict[str, DagStructure]:
        pools = class_pools(settings)
        return {dag_id: each for dag_id, each in self._source.structures.items() if each.uses(pools)}

    def _read(self, connection: Any, settings: Settings, now: float) -> AirflowView:
        self._source.refresh(connection, now)
        structures = self._relevant(settings)
        existing, runs_problem = read_runs(connection, structures.keys())
        instances, instances_problem = self._instances.read(connection, structures.keys(), now)
        coming = self._coming.read(connection, structures, now, now + settings.scaling.horizon_seconds)
        pools = read_pools(connection)

        used: dict[tuple[str, bool], _Shaped] = {}
        self._made_anew = 0

        def shape_of(dag_id: str, *, is_paused: bool) -> DagShape:
            key = (dag_id, is_paused)
            if key not in used:
                used[key] = self._shaped(structures[dag_id], settings, now, is_paused=is_paused)
            return used[key].shape

        # What did not change stays the same object: most of a quiet read, and of what the planner keeps by identity.
        active: dict[tuple[str, str], _Made] = {}
        for run in existing:
            key = (run.dag_id, run.run_id)
            shape = shape_of(run.dag_id, is_paused=run.is_paused)
            raw = run.annotation if run.annotation is not None else structures[run.dag_id].annotation
            active[key] = self._active.get(key, _NOTHING_MADE).again(
                (run, instances.get(key, ()), shape, self._annotation(raw, settings)), _existing_run
            )
        planned: dict[str, _Made] = {}
        for dag_id, upcoming in coming.items():
            annotation = self._annotation(structures[dag_id].annotation, settings)
            planned[dag_id] = self._planned.get(dag_id, _NOTHING_MADE).again(
                (dag_id, upcoming, shape_of(dag_id, is_paused=False), annotation), _coming_runs
            )
        runs = [run for made in active.values() for run in made.runs]
        for dag_id, made in planned.items():
            runs.extend(run for run in made.runs if (dag_id, run.run_id) not in active)
        self._shapes, self._active, self._planned = used, active, planned
        problems = [*self._source.problems, *self._coming.problems, runs_problem, instances_problem]
        problems.extend(_missing_pools(settings, pools))
        return AirflowView(tuple(runs), pools, tuple(problem for problem in problems if problem))

    def _shaped(self, structure: DagStructure, settings: Settings, now: float, *, is_paused: bool) -> _Shaped:
        old = self._shapes.get((structure.dag_id, is_paused))
        if old is not None and old.structure is structure and (old.settings is settings or old.settings == settings):
            if 0 <= now - old.made_at < _SHAPE_SECONDS or self._made_anew >= _SHAPES_A_READ:
                return old
            self._made_anew += 1
        profiles = self._profiles() if callable(self._profiles) else self._profiles
        shape = dag_shape(structure, settings, profiles, is_paused=is_paused)
        # An equal shape stays the same object: the planner may keep by identity what it works out from it.
        return _Shaped(structure, settings, now, old.shape if old is not None and old.shape == shape else shape)

    def _annotation(self, raw: object, settings: Settings) -> RunAnnotation | None:
        return None if raw is None else self._parse_annotation(raw, settings)


def _existing_run(
    run: ExistingRun, instances: tuple[TaskInstance, ...], shape: DagShape, annotation: RunAnnotation | None
) -> tuple[Run, ...]:
    known = {task.task_id for task in shape.tasks}
    made = Run(
        dag_id=run.dag_id,
        run_id=run.run_id,
        phase=run.phase,
        starts_at=run.starts_at,
        shape=shape,
        # Instances of tasks that the DAG no longer has are not planned for: nothing says what they need.
        tasks=tuple(each for each in instances if each.task_id in known),
        annotation=annotation,
        is_backfill=run.is_backfill,
    )
    return (made,)


def _coming_runs(
    dag_id: str, upcoming: tuple[ComingRun, ...], shape: DagShape, annotation: RunAnnotation | None
) -> tuple[Run, ...]:
    return tuple(
        Run(dag_id, each.run_id, RunPhase.COMING, each.starts_at, shape, annotation=annotation) for each in upcoming
    )


def _missing_pools(settings: Settings, pools: tuple[AirflowPool, ...]) -> list[str]:
    there = {pool.name for pool in pools}
    return [
        f"Airflow pool {each.airflow_pool} of capacity class {each.name} does not exist: tasks in it are never queued. "
        "The controller creates it in mode sync or manage."
        for each in settings.classes
        if each.airflow_pool and each.airflow_pool not in there
    ]


def _configured_parser() -> AnnotationParser:
    from airflow_elastic.config import parse_run_annotation

    parser: AnnotationParser = parse_run_annotation
    return parser
