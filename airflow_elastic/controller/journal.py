"""Which decisions are worth a line: each action once, a refusal that lasts once until it changes."""

from __future__ import annotations

import logging
import re

from airflow_elastic.airflow_db.store import Decision
from airflow_elastic.model.plan import Plan
from airflow_elastic.model.reasons import Reason

__all__ = ["Journal"]

logger = logging.getLogger(__name__)

_REPEAT_SECONDS = 30.0
"""A refusal whose figures alone changed is written again no sooner than this."""
_FORGET_SECONDS = 300.0
"""A refusal that was absent for longer counts as new."""
_MOST_WAITING = 2000
_FIGURES = re.compile(r"\d+(?:[.,:]\d+)*")


class Journal:
    """Collects decisions of a tick until they are saved."""

    def __init__(self) -> None:
        self._waiting: list[Decision] = []
        self._said: dict[tuple[str, str, str], tuple[str, float, float]] = {}
        """(kind, about, code) → (sentence, written at, last seen at)"""

    def write(self, now: float, kind: str, about: str, reason: Reason, *, applied: bool) -> None:
        """Note something that happened once."""
        self._put(Decision(now, kind, about, reason.code.name, reason.sentence, applied))

    def note(self, now: float, kind: str, about: str, code: str, sentence: str, *, applied: bool) -> None:
        """Note something that an adapter said; the same again only when it changes."""
        if self._is_new(now, kind, about, code, sentence):
            self._put(Decision(now, kind, about, code, sentence, applied))

    def plan(self, now: float, plan: Plan) -> None:
        """Note what a plan refused and which reservations changed."""
        for transition in plan.transitions:
            self.write(now, "reservation", transition.about, transition.reason, applied=True)
        for refusal in plan.refusals:
            reason = refusal.reason
            self.note(now, "refusal", refusal.about, reason.code.name, reason.sentence, applied=False)
        if plan.frozen is not None:
            self.note(now, "refusal", "controller", plan.frozen.code.name, plan.frozen.sentence, applied=False)

    def take(self) -> list[Decision]:
        """Return what has to be saved; give it back with ``keep`` when that failed."""
        taken, self._waiting = self._waiting, []
        return taken

    def keep(self, decisions: list[Decision]) -> None:
        """Keep decisions that could not be saved yet; the oldest are dropped where they are too many."""
        self._waiting = (decisions + self._waiting)[-_MOST_WAITING:]

    def _put(self, decision: Decision) -> None:
        logger.info("%s %s: %s", decision.kind, decision.about, decision.sentence)
        self._waiting.append(decision)
        del self._waiting[:-_MOST_WAITING]

    def _is_new(self, now: float, kind: str, about: str, code: str, sentence: str) -> bool:
        key = (kind, about, code)
        before = self._said.get(key)
        if len(self._said) > _MOST_WAITING:
            self._said = {each: said for each, said in self._said.items() if abs(now - said[2]) <= _FORGET_SECONDS}
        if before is not None and abs(now - before[2]) <= _FORGET_SECONDS:
            only_figures = _FIGURES.sub("#", before[0]) == _FIGURES.sub("#", sentence)
            if before[0] == sentence or (only_figures and abs(now - before[1]) < _REPEAT_SECONDS):
                self._said[key] = (before[0], before[1], now)
                return False
        self._said[key] = (sentence, now, now)
        return True
