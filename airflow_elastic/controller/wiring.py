"""Wiring: the real parts of the controller, built from Airflow's options. The only place that knows all of them."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable
from typing import Any

from airflow_elastic.airflow_db.leader import Leadership
from airflow_elastic.airflow_db.pools import PoolChange, ensure_pool, write_slots
from airflow_elastic.airflow_db.reader import AirflowReader, AirflowView
from airflow_elastic.airflow_db.store import Store
from airflow_elastic.config import WatchedSettings, configured_path, discover_settings
from airflow_elastic.controller.loop import Controller
from airflow_elastic.controller.ports import Parts
from airflow_elastic.controller.supervisor import PARENT_VARIABLE
from airflow_elastic.kubernetes.client import make_cluster_api
from airflow_elastic.kubernetes.cluster import ClusterView
from airflow_elastic.model.settings import Settings
from airflow_elastic.planning.profile import Profiles

__all__ = ["AirflowDatabase", "build_controller"]

_DISCOVER_SECONDS = 10.0
_LONGEST_WATCH_SECONDS = 20.0
_SHORTEST_WATCH_SECONDS = 2.0
_STALE_SHARE = 3.0
"""The watch is renewed this many times within the time after which a view counts as stale."""


class AirflowDatabase:
    """Airflow's metadata database as the controller uses it."""

    def __init__(self, engine: Any = None) -> None:
        self._engine = engine
        self._settings = Settings()
        self._profiles = Profiles.empty(self._settings.scaling.default_task_seconds)
        self._reader = AirflowReader(lambda: self._settings, lambda: self._profiles, engine=engine)

    def read(self, now: float, settings: Settings, profiles: Profiles) -> AirflowView:
        """Return runs and pools under these settings, durations estimated from these profiles."""
        self._settings, self._profiles = settings, profiles
        return self._reader.read(now)

    def history(self, now: float, settings: Settings) -> Iterable[tuple[str, str, float, float]]:
        """Return past durations of the DAGs that need nodes."""
        self._settings = settings
        return self._reader.history(now)

    def write_slots(self, airflow_pool: str, slots: int, token: int) -> bool:
        """Set a pool's slots in one statement, which checks the token too."""
        return write_slots(airflow_pool, slots, token=token, engine=self._engine)

    def ensure_pool(self, airflow_pool: str, description: str) -> str:
        """Create a missing pool with 0 slots; return what was done, empty for nothing."""
        done = ensure_pool(airflow_pool, 0, description, engine=self._engine)
        return "" if done is PoolChange.NOTHING else str(done)


class _Discovery:
    """Settings from the nodes' labels, looked at again now and then."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._found = Settings()
        self._looked_at = float("-inf")

    def __call__(self) -> Settings:
        now = time.monotonic()
        if now - self._looked_at >= _DISCOVER_SECONDS or not self._found.node_pools:
            self._found, self._looked_at = discover_settings(self._view.raw_nodes()), now
        return self._found


def _holder() -> str:
    """Return this candidate's name: host and process.

    Under a supervisor it is the supervisor's process: it never has two children at once, so one that starts after a
    kill may take over from its predecessor without waiting for the end of its time.
    """
    return f"{socket.gethostname()}:{os.environ.get(PARENT_VARIABLE) or os.getpid()}"


def build_controller(engine: Any = None) -> Controller:
    """Return a controller for this installation, its watches started; the caller runs and closes it.

    Raises:
        ConfigurationError: no cluster is configured.
    """
    from airflow.configuration import conf

    api = make_cluster_api(str(conf.get("elastic", "kubernetes_conn_id", fallback="") or "").strip())
    view = ClusterView()
    path = configured_path()
    settings = WatchedSettings(path, discover=_Discovery(view))
    stale_after = settings.poll().scaling.stale_after_seconds
    parts = Parts(
        settings=settings,
        cluster=view,
        api=api,
        airflow=AirflowDatabase(engine),
        memory=Store(engine=engine),
        leader=Leadership(_holder(), engine=engine),
        is_configured=bool(path),
        closing=[view.stop],
    )
    controller = Controller(parts)
    view.start(api, min(_LONGEST_WATCH_SECONDS, max(_SHORTEST_WATCH_SECONDS, stale_after / _STALE_SHARE)))
    return controller
