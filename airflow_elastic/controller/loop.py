"""The loop: one tick observes, plans and acts; ticks come by time and at once when the cluster changes.

It can be killed at any point. What it needs again is in the cluster, in Airflow's database and in our tables.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from airflow_elastic.airflow_db.fencing import LeadershipLost
from airflow_elastic.controller.act import Actor
from airflow_elastic.controller.complaints import Complaints
from airflow_elastic.controller.journal import Journal
from airflow_elastic.controller.keeping import Keeper
from airflow_elastic.controller.leading import Leading
from airflow_elastic.controller.learning import Learner
from airflow_elastic.controller.lease import VisibleLease
from airflow_elastic.controller.observe import Observation, Observer
from airflow_elastic.controller.pauses import PauseGuard, no_later_than
from airflow_elastic.controller.ports import Parts
from airflow_elastic.controller.strays import Strays
from airflow_elastic.errors import ElasticError, TemporaryError
from airflow_elastic.model.plan import Plan
from airflow_elastic.model.reasons import Reason, ReasonCode
from airflow_elastic.model.reservation import Reservation
from airflow_elastic.model.settings import Mode, Settings
from airflow_elastic.model.snapshot import PlannerMemory, Snapshot
from airflow_elastic.model.status import ControllerInfo
from airflow_elastic.planning.planner import plan as make_plan
from airflow_elastic.providers import make_provider
from airflow_elastic.providers.base import Provider

__all__ = ["Controller", "Tick"]

logger = logging.getLogger(__name__)

_DEBOUNCE_SECONDS = 0.05
_POD_GAP_SECONDS = 0.25
"""Between two ticks that pods alone cause."""
_FAST_LOOK_SECONDS = 3.0
"""A tick that a node causes may use a look at Airflow's database of this age: slots must follow within a second."""
_FIRST_VIEW_SECONDS = 15.0
_STRAYS_SECONDS = 3.0
_REST_FACTOR = 0.5
"""After a tick the loop rests at least this share of the time that it took (at most 1 s), nodes excepted."""


@dataclass(frozen=True, slots=True)
class Tick:
    """What one tick saw and decided. ``plan`` is None for a stand-by."""

    observation: Observation | None = None
    plan: Plan | None = None
    is_leader: bool = False
    why_not: str = ""
    """Why nothing was done."""


class Controller:
    """Observe → plan → act. One thread calls ``tick`` or ``run``; ``stop`` may come from any."""

    def __init__(
        self,
        parts: Parts,
        *,
        wall_clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._parts = parts
        self._wall = wall_clock
        self._monotonic = monotonic
        self._stopping = threading.Event()
        self._complaints = Complaints(monotonic)
        self._journal = Journal()
        settings = parts.settings.poll()
        self._learner = Learner(settings.scaling.default_task_seconds)
        self._observer = Observer(parts.cluster, parts.airflow, self._learner, self._complaints, wall_clock, monotonic)
        self._actor = Actor(parts.airflow, self._observer, self._learner, self._journal, self._complaints)
        self._keeper = Keeper(parts.memory, self._journal, self._learner, self._complaints, monotonic)
        self._leading = Leading(parts.leader, self._complaints, monotonic)
        self._lease = VisibleLease(parts.api, parts.leader.holder, self._complaints, wall_clock, monotonic)
        self._pauses = PauseGuard()
        self._strays = Strays(parts.api)
        self._looked_for_strays_at = float("-inf")
        self._started_at = wall_clock()
        self._settings: Settings | None = None
        self._providers: dict[str, Provider] = {}
        self._memory = PlannerMemory()
        self._reservations: tuple[Reservation, ...] = ()
        self._managed = False
        self._tick_seconds = 0.0

    # running

    def run(self) -> None:
        """Tick until ``stop``; then give the leadership up. Capacity stays as it is."""
        logger.info("The controller runs as %s", self._parts.leader.holder)
        self._await_view()
        cause = ""
        while not self._stopping.is_set():
            began = self._monotonic()
            try:
                self.tick(cause)
                self._complaints.went_well("a tick of the controller")
            except Exception as error:
                # Nothing that one tick meets may end the loop: pools would keep slots of nodes that are gone.
                self._complaints.failed("a tick of the controller", error)
                cause = ""
            self._tick_seconds = self._monotonic() - began
            cause = self._rest(began)
        self.close()

    def stop(self) -> None:
        """Ask ``run`` to end after the tick under way."""
        self._stopping.set()
        self._parts.cluster.wake()

    def close(self) -> None:
        """Save what was learnt, give the leadership up, end the watches."""
        token = self._leading.token
        try:
            if token is not None:
                self._keeper.save_learnt(token, at_once=True)
                self._lease.release()
            self._leading.release()
        except ElasticError as error:
            self._complaints.failed("ending the controller", error)
        for close in self._parts.closing:
            close()
        logger.info("The controller has ended; capacity stays as it is")

    def _rest(self, began: float) -> str:
        """Wait for the next tick's time or a change; return what changed.

        A change of a node ends the rest at once; pods change in waves, which are looked at together.
        """
        settings = self._settings
        ended = began + self._tick_seconds
        rest = min(1.0, _REST_FACTOR * self._tick_seconds)
        due = max(began + (settings.scaling.tick_seconds if settings else 1.0), ended + rest)
        cause = ""
        while not self._stopping.is_set() and (left := due - self._monotonic()) > 0:
            changed = self._parts.cluster.wait(left)
            if changed == "nodes":
                self._stopping.wait(_DEBOUNCE_SECONDS)
                return changed
            if changed and not cause:
                cause = changed
                due = min(due, ended + max(_POD_GAP_SECONDS, rest))
        return cause

    # one tick

    def tick(self, cause: str = "") -> Tick:
        """Observe, plan and act once. ``cause``: ``nodes`` or ``pods`` changed, or empty: its time has come."""
        settings = self._use_settings()
        scaling = settings.scaling
        unusual = self._pauses.check(self._wall(), self._monotonic(), scaling.tick_seconds + self._tick_seconds)
        reuse = {"nodes": max(_FAST_LOOK_SECONDS, scaling.tick_seconds), "pods": scaling.tick_seconds}
        may_be_old = reuse.get(cause, 0.0)
        if unusual:
            logger.warning("%s", unusual)
            self._observer.forget()
            self._learner.forget_requests()
            self._memory = no_later_than(self._memory, self._wall())
            self._leading.doubt()
            self._parts.cluster.refresh()
            may_be_old = 0.0
        if not self._parts.is_configured:
            return self._only_look(settings, may_be_old)
        token = self._leading.token_now(self._wall())
        if token is None:
            return Tick(why_not=self._leading.why_not)
        try:
            return self._led(settings, token, may_be_old)
        except LeadershipLost as error:
            self._complaints.failed("leading", error)
            self._leading.lost()
            return Tick(why_not=str(error))

    def _led(self, settings: Settings, token: int, may_be_old: float) -> Tick:
        if self._leading.is_new:
            self._take_over(settings, token)
        self._sweep(settings)
        began = self._monotonic()
        observation, plan = self._observe_and_plan(settings, may_be_old)
        snapshot = observation.snapshot
        self._journal.plan(snapshot.now, plan)
        self._mend_pools(settings, snapshot)
        for problem in observation.problems:
            self._journal.note(snapshot.now, "problem", "controller", ReasonCode.NOTE.name, problem, applied=False)
        # Owners are on record before anything is made for them: whatever a killed process leaves has one.
        self._keeper.save_reservations(plan.reservations, token)
        if plan.frozen is None:
            # Observing may have taken long: what follows is done only by whoever still leads.
            if not self._leads(token):
                return Tick(observation, plan, why_not=self._leading.why_not)
            self._actor.apply(plan, observation, self._providers, token, lambda: self._leads(token))
            self._reservations, self._memory = plan.reservations, plan.memory
        info = ControllerInfo(
            holder=self._parts.leader.holder,
            started_at=self._started_at,
            configuration_error=self._parts.settings.error,
            plan_seconds=round(self._monotonic() - began, 4),
        )
        self._keeper.publish(snapshot, plan, info, token)
        self._keeper.save_learnt(token)
        if settings.mode is not Mode.OBSERVE:
            self._lease.renew(settings.namespace, token)
        return Tick(observation, plan, is_leader=True)

    def _leads(self, token: int) -> bool:
        return self._leading.token_now(self._wall()) == token

    def _only_look(self, settings: Settings, may_be_old: float) -> Tick:
        """Without a capacity file: plan, log what is recommended (the journal does), write nothing."""
        observation, plan = self._observe_and_plan(settings, may_be_old)
        self._journal.plan(observation.snapshot.now, plan)
        self._journal.take()
        self._reservations, self._memory = plan.reservations, plan.memory
        return Tick(observation, plan)

    def _observe_and_plan(self, settings: Settings, may_be_old: float) -> tuple[Observation, Plan]:
        observation = self._observer.observe(
            settings, self._providers, self._memory, self._reservations, airflow_may_be_old=may_be_old
        )
        return observation, make_plan(observation.snapshot)

    def _take_over(self, settings: Settings, token: int) -> None:
        """Continue from what an earlier leader left: reservations and what was learnt."""
        self._reservations = self._keeper.load(self._parts.airflow, settings, self._wall())
        self._memory = PlannerMemory()
        if settings.mode is not Mode.OBSERVE:
            self._ensure_pools(settings)
        self._leading.is_new = False
        logger.info("This controller leads (token %d), with %d reservation(s)", token, len(self._reservations))

    def _sweep(self, settings: Settings) -> None:
        """Remove leftovers; in mode observe only what this very process made while it still managed."""
        self._managed = self._managed or settings.mode is Mode.MANAGE
        if settings.mode is Mode.OBSERVE and not self._managed:
            return
        if self._parts.cluster.age_seconds() > settings.scaling.stale_after_seconds:
            return
        self._actor.sweep(settings, self._providers, self._reservations)
        self._strays.owned(self._reservations)
        now = self._monotonic()
        if now - self._looked_for_strays_at >= _STRAYS_SECONDS:
            self._looked_for_strays_at = now
            self._actor.sweep_strays(self._strays, settings)

    def _use_settings(self) -> Settings:
        settings = self._parts.settings.poll()
        if self._settings is not None and settings == self._settings:
            return self._settings  # the very same object: what is worked out from it is kept by identity
        before, self._settings = self._settings, settings
        providers: dict[str, Provider] = {}
        old = {name: provider for name, provider in self._providers.items() if before and provider.pool}
        for pool in settings.node_pools:
            if pool.name in old and old[pool.name].pool == pool and before and before.namespace == settings.namespace:
                providers[pool.name] = old[pool.name]
                continue
            try:
                providers[pool.name] = make_provider(pool, self._parts.api, settings.namespace)
            except ElasticError as error:
                self._complaints.failed(f"node pool {pool.name}", error)
        self._providers = providers
        if before is not None:
            self._strays.changed(before, settings)
            logger.info("The capacity file has changed: mode %s, %d node pool(s)", settings.mode, len(providers))
            if settings.mode is not Mode.OBSERVE and self._leading.token is not None:
                self._ensure_pools(settings)
        return settings

    def once(self) -> Tick:
        """Wait for a complete view of the cluster, then make one tick."""
        self._await_view()
        return self.tick()

    def _await_view(self) -> None:
        """Wait for the first complete lists; without them the first tick would only say that it sees nothing."""
        deadline = self._monotonic() + _FIRST_VIEW_SECONDS
        while self._parts.cluster.age_seconds() > _FIRST_VIEW_SECONDS and self._monotonic() < deadline:
            if self._stopping.is_set():
                return
            self._parts.cluster.wait(0.1)

    def _ensure_pools(self, settings: Settings) -> bool:
        """Have each class's Airflow pool, counting deferred tasks; return whether anything was changed."""
        mended = False
        for each in settings.classes:
            if not each.airflow_pool:
                continue
            place = f"creating Airflow pool {each.airflow_pool}"
            try:
                done = self._parts.airflow.ensure_pool(
                    each.airflow_pool, f"Capacity class {each.name}; its slots are kept by airflow-elastic"
                )
                self._complaints.went_well(place)
            except TemporaryError as error:
                self._complaints.failed(place, error)
                continue
            if done:
                mended = True
                reason = Reason.of(ReasonCode.NOTE, text=f"Airflow pool {each.airflow_pool}: {done}")
                self._journal.write(self._wall(), "slots", each.airflow_pool, reason, applied=True)
        return mended

    def _mend_pools(self, settings: Settings, snapshot: Snapshot) -> None:
        """Make good what somebody deleted or switched over by hand, or what could not be made at the take-over.

        Tasks of a pool that does not exist are never queued.
        """
        if settings.mode is Mode.OBSERVE or snapshot.airflow_age_seconds > settings.scaling.stale_after_seconds:
            return
        sound = {pool.name for pool in snapshot.airflow_pools if pool.include_deferred}
        wanted = {each.airflow_pool for each in settings.classes if each.airflow_pool}
        if not wanted <= sound and self._ensure_pools(settings):
            self._observer.look_again()
