"""Fakes of what the controller needs beside a cluster: Airflow's database, our tables, leader, capacity file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_elastic.airflow_db.fencing import LeadershipLost
from airflow_elastic.errors import TemporaryError
from airflow_elastic.model.demand import Run
from airflow_elastic.model.reservation import Reservation
from airflow_elastic.model.settings import Settings
from airflow_elastic.model.snapshot import AirflowPool
from airflow_elastic.planning.profile import Profiles

__all__ = ["FakeAirflow", "FakeLeader", "FakeSettings", "FakeView", "MemoryStore"]


@dataclass(frozen=True, slots=True)
class FakeView:
    """One look at a fake Airflow."""

    runs: tuple[Run, ...] = ()
    airflow_pools: tuple[AirflowPool, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(slots=True)
class FakeAirflow:
    """Airflow's database in memory. Set ``runs`` and ``is_silent``; read ``pools`` and ``writes``."""

    runs: tuple[Run, ...] = ()
    pools: dict[str, AirflowPool] = field(default_factory=dict)
    past: list[tuple[str, str, float, float]] = field(default_factory=list)
    is_silent: bool = False
    """True: every call fails as when the database does not answer."""
    reads: int = 0
    writes: list[tuple[str, int]] = field(default_factory=list)
    """(pool, slots), in order; writes that changed nothing are not listed."""
    leader: FakeLeader | None = None
    """Where given, slots are written only with its present token."""

    def read(self, now: float, settings: Settings, profiles: Profiles) -> FakeView:
        """Return the runs and pools."""
        self._answer()
        self.reads += 1
        return FakeView(self.runs, tuple(self.pools[name] for name in sorted(self.pools)))

    def history(self, now: float, settings: Settings) -> Iterable[tuple[str, str, float, float]]:
        """Return ``past``."""
        self._answer()
        return list(self.past)

    def write_slots(self, airflow_pool: str, slots: int, token: int) -> bool:
        """Set a pool's slots."""
        self._answer()
        if self.leader is not None and self.leader.token != token:
            return False
        pool = self.pools.get(airflow_pool)
        if pool is None or pool.slots == slots:
            return False
        self.pools[airflow_pool] = replace(pool, slots=slots)
        self.writes.append((airflow_pool, slots))
        return True

    def ensure_pool(self, airflow_pool: str, description: str) -> str:
        """Create a pool that is missing."""
        self._answer()
        pool = self.pools.get(airflow_pool)
        if pool is not None and pool.include_deferred:
            return ""
        if pool is not None:
            self.pools[airflow_pool] = replace(pool, include_deferred=True)
            return "counts deferred tasks now"
        self.pools[airflow_pool] = AirflowPool(airflow_pool, 0)
        return "created"

    def _answer(self) -> None:
        if self.is_silent:
            raise TemporaryError("the fake database does not answer")


@dataclass(slots=True)
class FakeLeader:
    """A leadership that is always granted unless ``is_taken``."""

    holder: str = "fake:1"
    ttl_seconds: float = 10.0
    is_taken: bool = False
    """True: another controller leads."""
    is_silent: bool = False
    token: int = 0
    missing_tables: str = ""
    is_held: bool = False

    def acquire_or_renew(self, now: float) -> int | None:
        """Return the token, a new one for a new leader."""
        if self.is_silent:
            raise TemporaryError("the fake database does not answer")
        if self.is_taken:
            self.is_held = False
            return None
        if not self.is_held:
            self.token += 1
            self.is_held = True
        return self.token

    def release(self) -> None:
        """Give it up."""
        self.is_held = False


@dataclass(slots=True)
class MemoryStore:
    """Our tables in memory; what is kept survives the controller that wrote it."""

    leader: FakeLeader | None = None
    reservations: tuple[Reservation, ...] = ()
    profiles: dict[str, Any] | None = None
    status: dict[str, Any] | None = None
    decisions: list[Any] = field(default_factory=list)
    status_writes: int = 0
    is_silent: bool = False

    def load_reservations(self) -> tuple[Reservation, ...]:
        """Return the reservations saved last."""
        self._answer()
        return self.reservations

    def save_reservations(self, reservations: Iterable[Reservation], token: int) -> bool:
        """Replace the reservations."""
        self._check(token)
        self.reservations = tuple(reservations)
        return True

    def load_profiles(self) -> dict[str, Any] | None:
        """Return what was learnt."""
        self._answer()
        return self.profiles

    def save_profiles(self, document: dict[str, Any], token: int) -> bool:
        """Keep what was learnt."""
        self._check(token)
        self.profiles = document
        return True

    def save_status(self, document: dict[str, Any], token: int) -> bool:
        """Publish the status."""
        self._check(token)
        self.status = document
        self.status_writes += 1
        return True

    def add_decisions(self, decisions: Sequence[Any], token: int) -> bool:
        """Append decisions."""
        self._check(token)
        self.decisions.extend(decisions)
        return True

    def _check(self, token: int) -> None:
        self._answer()
        if self.leader is not None and (token != self.leader.token or self.leader.is_taken):
            raise LeadershipLost(f"token {token} is stale")

    def _answer(self) -> None:
        if self.is_silent:
            raise TemporaryError("the fake database does not answer")


@dataclass(slots=True)
class FakeSettings:
    """A capacity file that a test may change at any time."""

    settings: Settings
    error: str = ""

    def poll(self) -> Settings:
        """Return the settings."""
        return self.settings
