"""Who may see the page: an authenticated user who may see Airflow's cluster activity and its pools.

Airflow mounts plugin applications without any authentication, so this is our own gate, on every route but static files.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping
from threading import Lock
from typing import Annotated, Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_pool, requires_access_view
from fastapi import Depends

from airflow_elastic.ui.visibility import Veil, dag_ids_of

__all__ = ["READERS", "DagReach", "VeilDep"]

DagIds = frozenset[str]

READERS = [Depends(requires_access_view(AccessView.CLUSTER_ACTIVITY)), Depends(requires_access_pool("GET"))]
"""Dependencies of every route: 401 without a session, 403 without the permissions."""

_REMEMBER_SECONDS = 15.0
"""A page polls every two seconds; asking the auth manager about 1,000 DAGs that often would cost more than the rest."""


class DagReach:
    """Which DAGs there are and which of them a user may read; remembered for a few seconds per user."""

    def __init__(self, remember_seconds: float = _REMEMBER_SECONDS, at_least_seconds: float = 1.0) -> None:
        self._remember_seconds = remember_seconds
        self._at_least_seconds = at_least_seconds
        self._answers: dict[str, tuple[float, DagIds, DagIds]] = {}
        self._lock = Lock()

    def of(self, user: Any, mentioned: Collection[str]) -> tuple[DagIds, DagIds]:
        """Return (all DAG ids, those that the user may read).

        A mentioned DAG that is not remembered is new: then it is asked again, though not more than once a second.
        """
        user_id = str(user.get_id())
        now = time.monotonic()
        with self._lock:
            answer = self._answers.get(user_id)
        age_seconds = math.inf if answer is None else now - answer[0]
        is_new = answer is not None and age_seconds > self._at_least_seconds and not answer[1].issuperset(mentioned)
        if answer is None or is_new or age_seconds > self._remember_seconds:
            # In a mounted application `request.app` is ours: Airflow's manager comes from its own accessor.
            readable = frozenset(get_auth_manager().get_authorized_dag_ids(user=user, method="GET"))
            answer = (now, _all_dag_ids(), readable)
            with self._lock:
                fresh = {key: each for key, each in self._answers.items() if now - each[0] <= self._remember_seconds}
                self._answers = {**fresh, user_id: answer}
        return answer[1], answer[2]


def _all_dag_ids() -> DagIds:
    from airflow.models.dag import DagModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session(scoped=False) as session:
        return frozenset(session.scalars(select(DagModel.dag_id)))


_reach = DagReach()


def _veil_for(user: GetUserDep) -> Callable[[Mapping[str, Any]], Veil]:
    def veil(document: Mapping[str, Any]) -> Veil:
        return Veil.over(document, *_reach.of(user, dag_ids_of(document)))

    return veil


VeilDep = Annotated[Callable[[Mapping[str, Any]], Veil], Depends(_veil_for)]
"""Makes the veil that hides, in a status document, the DAGs that the caller may not read."""
