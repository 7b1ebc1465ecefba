"""Who may see the page: an authenticated user who may see Airflow's cluster activity and its pools.

Airflow mounts plugin applications without any authentication, so this is our own gate, on every route but static files.
"""

from __future__ import annotations

import time
from threading import Lock
from typing import Annotated, Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_pool, requires_access_view
from fastapi import Depends

__all__ = ["READERS", "DagReach", "DagReachDep"]

READERS = [Depends(requires_access_view(AccessView.CLUSTER_ACTIVITY)), Depends(requires_access_pool("GET"))]
"""Dependencies of every route: 401 without a session, 403 without the permissions."""

_REMEMBER_SECONDS = 15.0
"""A page polls every two seconds; asking the auth manager about 1,000 DAGs that often would cost more than the rest."""


class DagReach:
    """Which DAGs a user may read, of which there are; remembered for a few seconds per user."""

    def __init__(self, remember_seconds: float = _REMEMBER_SECONDS) -> None:
        self._remember_seconds = remember_seconds
        self._answers: dict[str, tuple[float, frozenset[str], frozenset[str]]] = {}
        self._lock = Lock()

    def of(self, user: Any) -> tuple[frozenset[str], frozenset[str]]:
        """Return (all DAG ids, those that the user may read)."""
        user_id = str(user.get_id())
        now = time.monotonic()
        with self._lock:
            answer = self._answers.get(user_id)
        if answer is None or now - answer[0] > self._remember_seconds:
            # In a mounted application `request.app` is ours: Airflow's manager comes from its own accessor.
            readable = frozenset(get_auth_manager().get_authorized_dag_ids(user=user, method="GET"))
            answer = (now, _all_dag_ids(), readable)
            with self._lock:
                self._answers = {
                    key: each for key, each in self._answers.items() if now - each[0] <= self._remember_seconds
                }
                self._answers[user_id] = answer
        return answer[1], answer[2]


def _all_dag_ids() -> frozenset[str]:
    from airflow.models.dag import DagModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session(scoped=False) as session:
        return frozenset(session.scalars(select(DagModel.dag_id)))


_reach = DagReach()


def _dag_reach(user: GetUserDep) -> tuple[frozenset[str], frozenset[str]]:
    return _reach.of(user)


DagReachDep = Annotated[tuple[frozenset[str], frozenset[str]], Depends(_dag_reach)]
"""(all DAG ids, those that the caller may read)"""
