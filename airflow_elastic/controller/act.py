"""Act: carry out a plan in its order, each step on its own, and note what came of it.

Slots go down before nodes go and up after they came: where lowering a pool fails, no node is released in the same tick.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from airflow_elastic.airflow_db.fencing import LeadershipLost
from airflow_elastic.controller.complaints import Complaints, sentence_of
from airflow_elastic.controller.journal import Journal
from airflow_elastic.controller.learning import Learner
from airflow_elastic.controller.observe import Observation, Observer
from airflow_elastic.controller.ports import Airflow
from airflow_elastic.controller.strays import Strays
from airflow_elastic.controller.warm import pool_owner_id, warm_shares
from airflow_elastic.errors import ElasticError, TemporaryError
from airflow_elastic.model.plan import Plan, SetNodes, SetSlots
from airflow_elastic.model.reasons import Reason, ReasonCode
from airflow_elastic.model.reservation import Reservation
from airflow_elastic.model.settings import Mode, Settings
from airflow_elastic.providers.base import InsufficientCapacity, Outcome, PoolFacts, Provider, Target

__all__ = ["Actor"]

_STOCK_OUT_SECONDS = 60.0
_REFUSED_SECONDS = 30.0


@dataclass(slots=True)
class Actor:
    """The only place that changes anything outside."""

    airflow: Airflow
    observer: Observer
    learner: Learner
    journal: Journal
    complaints: Complaints

    def apply(
        self,
        plan: Plan,
        observation: Observation,
        providers: dict[str, Provider],
        token: int,
        still_leads: Callable[[], bool] = lambda: True,
    ) -> bool:
        """Carry out what the mode allows; return whether everything succeeded.

        ``still_leads`` is asked before each action: the API server knows no fencing token, and this process may have
        been stopped, or held up by a slow answer, since the one before.

        Raises:
            LeadershipLost: another controller leads; nothing more was done.
        """
        snapshot = observation.snapshot
        mode = snapshot.settings.mode
        slots_failed = False
        well = True
        touched: set[str] = set()
        for action in plan.actions:
            if not _allowed(action, mode):
                what = action.reason.sentence
                reason = Reason.of(ReasonCode.OBSERVE_ONLY, mode=mode.value, what=what)
                self.journal.note(snapshot.now, "refusal", _about(action), reason.code.name, what, applied=False)
                continue
            _check_lead(still_leads)
            if isinstance(action, SetSlots):
                done = self._slots(action, snapshot.now, token)
                slots_failed = slots_failed or (not done and action.is_down)
            else:
                touched.add(action.node_pool)
                done = self._nodes(action, plan, observation, providers, may_release=not slots_failed)
            well = well and done
        if mode is Mode.MANAGE and plan.frozen is None:
            for name, provider in providers.items():
                if name not in touched and provider.is_autoscaled and name in observation.facts:
                    _check_lead(still_leads)
                    # As many as there are, but whose they are may have changed.
                    facts = observation.facts[name]
                    alive = sum(not pod.is_deleting and not pod.phase.is_finished for pod in facts.placeholders)
                    target = Target(len(facts.nodes), warm_shares(facts, plan.reservations, snapshot.settings, alive))
                    well = self._ask(provider, facts, target, ReasonCode.NOTE) is not None and well
        return well

    def sweep(self, settings: Settings, providers: dict[str, Provider], reservations: tuple[Reservation, ...]) -> None:
        """Remove what has no owner any more, whoever left it. Outside mode manage that is everything of ours."""
        live = {each.id for each in reservations if each.state.holds_capacity}
        live |= {pool_owner_id(pool) for pool in settings.node_pools}
        for name, facts in self.observer.facts(settings).items():
            if name not in providers:
                continue
            owners = live if settings.mode is Mode.MANAGE else set()
            place = f"sweeping node pool {name}"
            try:
                outcome = providers[name].sweep(facts, owners)
                self.complaints.went_well(place)
            except Exception as error:  # one pool's trouble is not the others'
                self.complaints.failed(place, error)
                continue
            self._say(name, outcome, facts.now)

    def sweep_strays(self, strays: Strays, settings: Settings) -> None:
        """Remove what pools left that are not declared any more."""
        cluster, now = self.observer.cluster, self.observer.wall_clock()
        place = "sweeping what undeclared node pools left"
        try:
            outcome = strays.sweep(settings, cluster.pods(settings), cluster.raw_nodes(), now)
            self.complaints.went_well(place)
        except ElasticError as error:
            self.complaints.failed(place, error)
            return
        self._say("controller", outcome, now)

    def _slots(self, action: SetSlots, now: float, token: int) -> bool:
        place = f"writing the slots of Airflow pool {action.airflow_pool}"
        try:
            changed = self.airflow.write_slots(action.airflow_pool, action.slots, token)
        except TemporaryError as error:
            self.complaints.failed(place, error)
            self.journal.note(now, "slots", action.airflow_pool, action.reason.code.name, str(error), applied=False)
            return False
        self.complaints.went_well(place)
        self.observer.wrote_slots(action.airflow_pool, action.slots)
        if changed:
            self.journal.write(now, "slots", action.airflow_pool, action.reason, applied=True)
        return True

    def _nodes(
        self,
        action: SetNodes,
        plan: Plan,
        observation: Observation,
        providers: dict[str, Provider],
        *,
        may_release: bool,
    ) -> bool:
        name, snapshot = action.node_pool, observation.snapshot
        provider, facts = providers.get(name), observation.facts.get(name)
        if provider is None or facts is None:
            return False
        if action.release and not may_release:
            why = f"{', '.join(action.release)} stay(s) in {name}: lowering the slots failed, and slots go down first"
            self.journal.note(snapshot.now, "refusal", name, ReasonCode.NOTE.name, why, applied=False)
            return False
        shares = warm_shares(facts, plan.reservations, snapshot.settings, action.warm_nodes)
        outcome = self._ask(provider, facts, Target(action.nodes, shares, action.release), action.reason.code)
        if outcome is None:
            return False
        if outcome.done:
            self.journal.write(snapshot.now, "nodes", name, action.reason, applied=True)
            if action.is_out:
                self.learner.asked(name, action.nodes - action.was, snapshot.now)
            else:
                self.learner.withdrawn(name, max(0, action.was - action.nodes - len(action.release)))
        return not outcome.refused

    def _ask(self, provider: Provider, facts: PoolFacts, target: Target, code: ReasonCode) -> Outcome | None:
        """Apply a target; None where it failed (the failure then shows in the pool's state and in a decision)."""
        name = provider.pool.name
        place = f"scaling node pool {name}"
        try:
            outcome = provider.apply(facts, target)
        except Exception as error:  # also what a provider did not foresee: the other pools are served all the same
            self.complaints.failed(place, error)
            sentence = sentence_of(error)
            if isinstance(error, InsufficientCapacity):
                self.observer.provider_failed(name, sentence, _STOCK_OUT_SECONDS)
            elif not isinstance(error, TemporaryError):
                self.observer.provider_failed(name, sentence, _REFUSED_SECONDS)
            self.journal.note(facts.now, "nodes", name, code.name, sentence, applied=False)
            return None
        self.complaints.went_well(place)
        self._say(name, outcome, facts.now)
        return outcome

    def _say(self, name: str, outcome: Outcome, now: float) -> None:
        for sentence in outcome.done:
            self.journal.write(now, "provider", name, Reason.of(ReasonCode.NOTE, text=sentence), applied=True)
        for sentence in outcome.refused:
            self.journal.note(now, "refusal", name, ReasonCode.NOTE.name, sentence, applied=False)


def _check_lead(still_leads: Callable[[], bool]) -> None:
    if not still_leads():
        raise LeadershipLost("it is not certain any more that this controller leads: the rest of its plan is dropped")


def _allowed(action: SetSlots | SetNodes, mode: Mode) -> bool:
    if mode is Mode.MANAGE:
        return True
    return mode is Mode.SYNC and isinstance(action, SetSlots)


def _about(action: SetSlots | SetNodes) -> str:
    return action.airflow_pool if isinstance(action, SetSlots) else action.node_pool
