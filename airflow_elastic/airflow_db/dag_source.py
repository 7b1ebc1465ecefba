"""Structures of all DAGs, kept up to date from the serialized DAGs: only what changed is read again."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Text, cast, func, select

from airflow_elastic.airflow_db.structure import DagStructure, parse_structure

__all__ = ["DagSource"]

_CHUNK = 50


class DagSource:
    """Cache of structures by ``dag_hash``. Not thread-safe: one reader, one source."""

    def __init__(self, scan_seconds: float = 5.0) -> None:
        """Look for changed DAGs every ``scan_seconds``, and at once when an unknown DAG is asked for."""
        self._scan_seconds = scan_seconds
        self._scanned_at: float | None = None
        self._hashes: dict[str, str] = {}
        self._structures: dict[str, DagStructure] = {}
        self._problems: dict[str, str] = {}

    @property
    def structures(self) -> Mapping[str, DagStructure]:
        """Return every readable DAG's structure by dag_id."""
        return self._structures

    @property
    def problems(self) -> tuple[str, ...]:
        """Return one sentence for each DAG that cannot be read."""
        return tuple(self._problems.values())

    def refresh(self, connection: Any, now: float, wanted: Iterable[str] = ()) -> None:
        """Bring the cache up to date if it is due, or if one of the ``wanted`` DAGs is not in it."""
        due = self._scanned_at is None or not 0 <= now - self._scanned_at < self._scan_seconds
        if not due and all(dag_id in self._hashes for dag_id in wanted):
            return
        self._scanned_at = now
        latest = {dag_id: (row_id, dag_hash) for dag_id, row_id, dag_hash in connection.execute(_latest_hashes())}
        for dag_id in self._hashes.keys() - latest.keys():
            self._forget(dag_id)
        changed = [row_id for dag_id, (row_id, dag_hash) in latest.items() if self._hashes.get(dag_id) != dag_hash]
        for start in range(0, len(changed), _CHUNK):
            for dag_id, dag_hash, text, compressed in connection.execute(_contents(changed[start : start + _CHUNK])):
                self._take(dag_id, dag_hash, text, compressed)

    def _take(self, dag_id: str, dag_hash: str, text: str | None, compressed: bytes | None) -> None:
        self._forget(dag_id)
        # A DAG that cannot be read is remembered by its hash too: it is looked at again when it changes.
        self._hashes[dag_id] = dag_hash
        try:
            data = json.loads(zlib.decompress(compressed) if compressed else text or "null")
            if not isinstance(data, dict):
                raise ValueError("its row in serialized_dag is empty")
            structure = parse_structure(data, dag_hash)
            if structure.dag_id != dag_id:
                raise ValueError(f"its serialized form names another DAG ({structure.dag_id!r})")
        except (ValueError, zlib.error, RecursionError) as error:
            self._problems[dag_id] = (
                f"DAG {dag_id} is left out of planning: {error}. It is read again when the DAG changes; "
                f"to write it anew run: airflow dags reserialize"
            )
            return
        self._structures[dag_id] = structure

    def _forget(self, dag_id: str) -> None:
        for cache in (self._hashes, self._structures, self._problems):
            cache.pop(dag_id, None)


def _latest_hashes() -> Any:
    """Select (dag_id, row id, hash) of each DAG's newest version: that is what Airflow makes new runs from."""
    from airflow.models.dag_version import DagVersion
    from airflow.models.serialized_dag import SerializedDagModel

    newest = (
        select(DagVersion.dag_id, func.max(DagVersion.version_number).label("number"))
        .join(SerializedDagModel, SerializedDagModel.dag_version_id == DagVersion.id)
        .group_by(DagVersion.dag_id)
        .subquery()
    )
    return (
        select(SerializedDagModel.dag_id, SerializedDagModel.id, SerializedDagModel.dag_hash)
        .join(DagVersion, SerializedDagModel.dag_version_id == DagVersion.id)
        .join(newest, (DagVersion.dag_id == newest.c.dag_id) & (DagVersion.version_number == newest.c.number))
    )


def _contents(row_ids: Sequence[Any]) -> Any:
    """Select the JSON as text: one broken row must not break the fetch of the others."""
    from airflow.models.serialized_dag import SerializedDagModel

    table = SerializedDagModel.__table__.c
    return select(table.dag_id, table.dag_hash, cast(table.data, Text), table.data_compressed).where(
        table.id.in_(row_ids)
    )
