"""What the controller last published, and whether it can be believed: shared by the page and the commands."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from airflow_elastic.model.status import STATUS_VERSION
from airflow_elastic.ui.words import duration

__all__ = [
    "SILENT_AFTER_SECONDS",
    "Availability",
    "Published",
    "StatusStore",
    "decision_records",
    "open_published",
    "read_published",
    "without_infinities",
]

_TOP_LEVEL: dict[str, Any] = {
    "now": int | float,
    "controller": dict,
    **dict.fromkeys(("mode", "source", "frozen"), str),
    **dict.fromkeys(("node_pools", "classes", "airflow_pools", "runs", "active_runs"), list),
    **dict.fromkeys(("tasks", "reservations", "actions", "refusals"), list),
    "tasks_left_out": int,
}
SILENT_AFTER_SECONDS = 30.0
"""A controller publishes after each tick (about a second); this long without a word means that it is gone."""

_START_CONTROLLER = (
    "Start it with `airflow elastic controller`, or set [elastic] controller = scheduler and restart the scheduler, "
    "which then starts and supervises it."
)


class StatusStore(Protocol):
    """The part of ``airflow_db.store.Store`` that surfaces read."""

    @property
    def missing_tables(self) -> str:
        """Return what is missing, or an empty text."""

    def load_status(self) -> dict[str, Any] | None:
        """Return the published document, or None where there is none (or no table)."""


class Availability(StrEnum):
    """How good the published document is."""

    LIVE = "live"
    STALE = "stale"
    NO_CONTROLLER = "no_controller"
    NO_TABLES = "no_tables"
    UNREADABLE = "unreadable"

    @property
    def has_document(self) -> bool:
        """Tell whether there is a document to show."""
        return self in (Availability.LIVE, Availability.STALE)


@dataclass(frozen=True, slots=True)
class Published:
    """A document with its age, or why there is none and what to do next."""

    availability: Availability
    document: dict[str, Any] | None = None
    age_seconds: float | None = None
    sentence: str = ""
    """What is wrong; empty: nothing."""
    next_step: str = ""


def read_published(store: StatusStore, now: float) -> Published:
    """Return what the controller last published, judged at ``now`` (Unix seconds). Never raises for a missing table."""
    document = store.load_status()
    if store.missing_tables:
        return Published(
            Availability.NO_TABLES,
            sentence="airflow-elastic's own tables are not in Airflow's database yet.",
            next_step="Run `airflow db migrate` once; it creates them beside Airflow's.",
        )
    if document is None:
        return Published(
            Availability.NO_CONTROLLER,
            sentence="No controller has reported yet.",
            next_step=_START_CONTROLLER,
        )
    if not _is_readable(document):
        return Published(
            Availability.UNREADABLE,
            sentence=f"The published status (version {document.get('version')!r}) is not one that this release reads.",
            next_step="Run the same release of airflow-elastic in the controller and in the api-server.",
        )
    age_seconds = max(0.0, now - document["now"])
    if age_seconds > SILENT_AFTER_SECONDS:
        holder = (document.get("controller") or {}).get("holder") or "unknown"
        return Published(
            Availability.STALE,
            document,
            age_seconds,
            sentence=f"The controller ({holder}) has been silent for {duration(age_seconds)}: "
            "what is shown may be out of date, and nothing is being scaled.",
            next_step=_START_CONTROLLER,
        )
    return Published(Availability.LIVE, document, age_seconds)


def _is_readable(document: dict[str, Any]) -> bool:
    """Tell whether a document is one that this release's readers were written for."""
    return document.get("version") == STATUS_VERSION and all(
        isinstance(document.get(key), kind) for key, kind in _TOP_LEVEL.items()
    )


def without_infinities(value: Any) -> Any:
    """Return a JSON value with every number that is not finite replaced by None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: without_infinities(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [without_infinities(each) for each in value]
    return value


def decision_records(store: Any, limit: int) -> list[dict[str, Any]]:
    """Return the latest decisions as plain records, newest first; none where the tables are missing."""
    records = [
        {
            "at": decision.at,
            "kind": str(decision.kind),
            "about": str(decision.about),
            "code": str(decision.code),
            "sentence": str(decision.sentence),
            "applied": bool(decision.applied),
        }
        for decision in store.decisions(limit)
    ]
    return sorted(records, key=lambda record: record["at"], reverse=True)


def open_published(now: float) -> tuple[Any, Published]:
    """Return the store of this process's Airflow and what was last published there.

    Raises:
        TemporaryError: the metadata database does not answer.
    """
    from airflow_elastic.airflow_db.store import Store

    store = Store()
    return store, read_published(store, now)
