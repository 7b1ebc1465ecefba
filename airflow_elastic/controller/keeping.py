"""Keeping: what goes into our own tables, only when it changed, and what a new leader takes up again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from airflow_elastic.airflow_db.fencing import LeadershipLost
from airflow_elastic.controller.complaints import Complaints
from airflow_elastic.controller.journal import Journal
from airflow_elastic.controller.learning import Learner
from airflow_elastic.controller.ports import Airflow, Memory
from airflow_elastic.errors import TemporaryError
from airflow_elastic.model.plan import Plan
from airflow_elastic.model.reservation import Reservation
from airflow_elastic.model.settings import Settings
from airflow_elastic.model.snapshot import Snapshot
from airflow_elastic.model.status import ControllerInfo, status_document

__all__ = ["Keeper"]

logger = logging.getLogger(__name__)

_STATUS_SECONDS = 2.0
_SHORTEST_STATUS_SECONDS = 0.3
_LEARNT_SECONDS = 30.0


class Keeper:
    """Writes status, decisions, reservations and profiles; a database that is away costs a line in the log, no more."""

    def __init__(
        self,
        memory: Memory,
        journal: Journal,
        learner: Learner,
        complaints: Complaints,
        monotonic: Callable[[], float],
    ) -> None:
        self._memory = memory
        self._journal = journal
        self._learner = learner
        self._complaints = complaints
        self._monotonic = monotonic
        self._saved: tuple[Reservation, ...] | None = None
        self._published_at = float("-inf")
        self._published: Any = None
        self._learnt_at = float("-inf")

    def load(self, airflow: Airflow, settings: Settings, now: float) -> tuple[Reservation, ...]:
        """Take up reservations and what was learnt; with nothing learnt yet, Airflow's own history.

        Raises:
            TemporaryError: the database does not answer; the take-over is tried again.
        """
        reservations = self._memory.load_reservations()
        self._saved = reservations
        if not self._learner.load(self._memory.load_profiles()):
            count = self._learner.from_history(airflow.history(now, settings))
            logger.info("Durations begin with %d past task instance(s) of Airflow's own history", count)
        return reservations

    def save_reservations(self, reservations: tuple[Reservation, ...], token: int) -> bool:
        """Save them if they differ from those saved last; return whether they are saved.

        Raises:
            LeadershipLost: the token is stale.
        """
        if reservations == self._saved:
            return True
        if not self._try("saving reservations", lambda: self._memory.save_reservations(reservations, token)):
            return False
        self._saved = reservations
        return True

    def publish(self, snapshot: Snapshot, plan: Plan, info: ControllerInfo, token: int) -> None:
        """Save the status when something in it changed or it gets old, and the decisions with it.

        Raises:
            LeadershipLost: the token is stale.
        """
        now = self._monotonic()
        age = now - self._published_at
        if age >= _SHORTEST_STATUS_SECONDS:
            essence = _essence(snapshot, plan, info)
            if age >= _STATUS_SECONDS or essence != self._published:
                self._published_at, self._published = now, essence
                document = status_document(snapshot, plan, info)
                self._try("publishing the status", lambda: self._memory.save_status(document, token))
        decisions = self._journal.take()
        if decisions and not self._try("saving decisions", lambda: self._memory.add_decisions(decisions, token)):
            self._journal.keep(decisions)

    def save_learnt(self, token: int, *, at_once: bool = False) -> None:
        """Save the profiles now and then.

        Raises:
            LeadershipLost: the token is stale.
        """
        now = self._monotonic()
        if not self._learner.changed or (not at_once and now - self._learnt_at < _LEARNT_SECONDS):
            return
        self._learnt_at = now
        document = self._learner.to_document()
        if self._try("saving the profiles", lambda: self._memory.save_profiles(document, token)):
            self._learner.changed = False

    def _try(self, place: str, write: Callable[[], bool]) -> bool:
        try:
            written = write()
        except LeadershipLost:
            raise
        except TemporaryError as error:
            self._complaints.failed(place, error)
            return False
        self._complaints.went_well(place)
        return written


def _essence(snapshot: Snapshot, plan: Plan, info: ControllerInfo) -> Any:
    """Return what a reader would call a change: nodes and their states, slots, actions, reservations, complaints.

    Made from the parts and not from the document: that holds thousands of lines, which a quiet tick need not write.
    """
    return (
        [(state.node_pool, state.coming_nodes, state.failure) for state in snapshot.node_pool_states],
        [(node.name, node.usable, node.is_booting, node.is_releasing) for node in snapshot.nodes],
        [(pool.name, pool.slots) for pool in snapshot.airflow_pools],
        plan.usable_slots,
        [(each.dag_id, each.run_id, each.node_pool, each.state) for each in plan.reservations],
        plan.actions,
        plan.frozen.sentence if plan.frozen else "",
        snapshot.settings.mode,
        info.configuration_error,
    )
