"""Leading: renewed well within its time to live; in doubt about it nothing is done."""

from __future__ import annotations

import logging
from collections.abc import Callable

from airflow_elastic.controller.complaints import Complaints
from airflow_elastic.controller.ports import Leader
from airflow_elastic.errors import TemporaryError

__all__ = ["Leading"]

logger = logging.getLogger(__name__)

_RENEW_SHARE = 0.25
"""Of the time to live: how old the last renewal may be before the next one."""
_TRUST_SHARE = 0.8
"""Of the time to live: how old it may be while the database does not answer."""
_STANDBY_SECONDS = 2.0


class Leading:
    """Keeps the fencing token current without asking the database at each tick."""

    def __init__(self, leader: Leader, complaints: Complaints, monotonic: Callable[[], float]) -> None:
        self._leader = leader
        self._complaints = complaints
        self._monotonic = monotonic
        self._renewed_at = float("-inf")
        self._asked_at = float("-inf")
        self._is_standby = False
        self.token: int | None = None
        """The token as far as this process knows."""
        self.why_not = "it is not certain yet who leads"
        self.is_new = False
        """This process has become leader and has not taken over yet; reset by whoever does."""

    def token_now(self, wall: float) -> int | None:
        """Return the token to act with, or None: another leads, or it is not certain that this process does."""
        now = self._monotonic()
        ttl = self._leader.ttl_seconds
        if self.token is not None and now - self._renewed_at < _RENEW_SHARE * ttl:
            return self.token
        if self.token is None and now - self._asked_at < min(_STANDBY_SECONDS, _RENEW_SHARE * ttl):
            return None
        self._asked_at = now
        try:
            token = self._leader.acquire_or_renew(wall)
        except TemporaryError as error:
            self._complaints.failed("renewing the leadership", error)
            return self.token if now - self._renewed_at < _TRUST_SHARE * ttl else None
        self._complaints.went_well("renewing the leadership")
        self._take(token, now)
        return self.token

    def doubt(self) -> None:
        """Ask the database before the next action, whatever was known."""
        self._renewed_at = self._asked_at = float("-inf")

    def lost(self) -> None:
        """A write was refused: another controller leads."""
        self.token = None
        self._asked_at = self._monotonic()

    def release(self) -> None:
        """Give the leadership up, so that a stand-by takes over at once.

        Raises:
            TemporaryError: the database does not answer; it ends by itself.
        """
        if self.token is not None:
            self.token = None
            self._leader.release()

    def _take(self, token: int | None, now: float) -> None:
        if token is None:
            if not self._is_standby or self.token is not None:
                self.why_not = self._leader.missing_tables or "another controller leads"
                logger.info("%s stands by: %s", self._leader.holder, self.why_not)
            self._is_standby = True
        else:
            self._is_standby = False
            self._renewed_at = now
            if token != self.token:
                self.is_new = True
        self.token = token
