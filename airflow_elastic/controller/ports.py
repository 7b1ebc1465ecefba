"""What the controller needs of others, as protocols; ``wiring`` puts the real ones together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from airflow_elastic.kubernetes.cluster import FinishedPod, NodeArrival
from airflow_elastic.model.demand import Run
from airflow_elastic.model.reservation import Reservation
from airflow_elastic.model.settings import Settings
from airflow_elastic.model.snapshot import AirflowPool, Node, Pod
from airflow_elastic.planning.profile import Profiles
from airflow_elastic.providers.base import ClusterCalls

__all__ = ["Airflow", "AirflowLook", "Cluster", "Leader", "Memory", "Parts", "SettingsSource"]


class SettingsSource(Protocol):
    """The capacity file, watched."""

    @property
    def error(self) -> str:
        """Return the broken file's complaint while the last good one is in force; empty: all is well."""
        ...

    def poll(self) -> Settings:
        """Return the settings in force; the same object until they change."""
        ...


class AirflowLook(Protocol):
    """What one read of Airflow's database found (``airflow_db.reader.AirflowView``)."""

    @property
    def runs(self) -> tuple[Run, ...]: ...  # noqa: D102
    @property
    def airflow_pools(self) -> tuple[AirflowPool, ...]: ...  # noqa: D102
    @property
    def problems(self) -> tuple[str, ...]: ...  # noqa: D102


class Airflow(Protocol):
    """Airflow's database: demand is read, pool slots are written."""

    def read(self, now: float, settings: Settings, profiles: Profiles) -> AirflowLook:
        """Return runs and pools; raise TemporaryError where the database does not answer."""
        ...

    def history(self, now: float, settings: Settings) -> Iterable[tuple[str, str, float, float]]:
        """Return (dag_id, task_id, seconds, finished at) of past successes, the oldest first."""
        ...

    def write_slots(self, airflow_pool: str, slots: int, token: int) -> bool:
        """Set a pool's slots while ``token`` leads; return whether they changed."""
        ...

    def ensure_pool(self, airflow_pool: str, description: str) -> str:
        """Create a pool that is missing, with 0 slots, and have it count deferred tasks; return what was done."""
        ...


class Memory(Protocol):
    """Our tables (``airflow_db.store.Store``). Every write is refused, in its statement, once the token is stale."""

    def load_reservations(self) -> tuple[Reservation, ...]: ...  # noqa: D102
    def save_reservations(self, reservations: Iterable[Reservation], token: int) -> bool: ...  # noqa: D102
    def load_profiles(self) -> dict[str, Any] | None: ...  # noqa: D102
    def save_profiles(self, document: dict[str, Any], token: int) -> bool: ...  # noqa: D102
    def save_status(self, document: dict[str, Any], token: int) -> bool: ...  # noqa: D102
    def add_decisions(self, decisions: Sequence[Any], token: int) -> bool: ...  # noqa: D102


class Leader(Protocol):
    """The candidacy (``airflow_db.leader.Leadership``)."""

    holder: str
    ttl_seconds: float

    @property
    def missing_tables(self) -> str: ...  # noqa: D102
    def acquire_or_renew(self, now: float) -> int | None: ...  # noqa: D102
    def release(self) -> None: ...  # noqa: D102


class Cluster(Protocol):
    """The view of the cluster (``kubernetes.cluster.ClusterView``)."""

    @property
    def problem(self) -> str: ...  # noqa: D102
    def age_seconds(self) -> float: ...  # noqa: D102
    def nodes(self, settings: Settings) -> tuple[Node, ...]: ...  # noqa: D102
    def pods(self, settings: Settings) -> tuple[Pod, ...]: ...  # noqa: D102
    def raw_nodes(self) -> list[dict[str, Any]]: ...  # noqa: D102
    def take_finished(self) -> list[FinishedPod]: ...  # noqa: D102
    def take_arrivals(self) -> list[NodeArrival]: ...  # noqa: D102
    def wait(self, timeout_seconds: float) -> str: ...  # noqa: D102
    def wake(self) -> None: ...  # noqa: D102
    def refresh(self) -> None: ...  # noqa: D102


@dataclass(slots=True)
class Parts:
    """Everything that a controller is made of."""

    settings: SettingsSource
    cluster: Cluster
    api: ClusterCalls
    airflow: Airflow
    memory: Memory
    leader: Leader
    is_configured: bool = True
    """False: there is no capacity file. Then nothing is written anywhere: no lead, no status, no decision."""
    closing: list[Any] = field(default_factory=list)
    """Called without arguments at the end, in this order."""
