"""Reads this installation's own past from Airflow's metadata database, as a workload."""

from __future__ import annotations

from typing import Any

from airflow_elastic.airflow_db.dag_source import DagSource
from airflow_elastic.airflow_db.database import metadata_engine, read_snapshot
from airflow_elastic.airflow_db.past_runs import read_past
from airflow_elastic.airflow_db.shapes import class_pools, dag_shape
from airflow_elastic.model.settings import Settings
from airflow_elastic.planning.profile import Profiles
from airflow_elastic.simulator.history import PastTask, workload_from_history
from airflow_elastic.simulator.workload import Workload

__all__ = ["own_workload"]


def own_workload(settings: Settings, now: float, days_test: float, *, engine: Any = None) -> Workload:
    """Return the last days of this installation as a workload: as many again before them are learnt from.

    Raises:
        TemporaryError: the database does not answer.
        ValueError: no task ran in a DAG that needs nodes under these settings.
    """

    def read(connection: Any) -> Workload:
        source = DagSource()
        source.refresh(connection, now)
        pools, profiles = class_pools(settings), Profiles.empty(settings.scaling.default_task_seconds)
        shapes = {
            dag_id: dag_shape(structure, settings, profiles, is_paused=False)
            for dag_id, structure in source.structures.items()
            if structure.uses(pools)
        }
        rows = read_past(connection, shapes.keys(), now, 2 * days_test)
        return workload_from_history((PastTask(*row) for row in rows), shapes, days_test=days_test)

    return read_snapshot(engine or metadata_engine(), read, what="reading the runs of the past")
