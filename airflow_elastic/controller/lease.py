"""A Kubernetes Lease that shows who leads. For people and tools only: the fencing token in the database decides."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from airflow_elastic.controller.complaints import Complaints
from airflow_elastic.errors import TemporaryError
from airflow_elastic.model.labels import LABEL_MANAGED_BY, MANAGED_BY
from airflow_elastic.providers.base import ClusterCalls

__all__ = ["LEASE_NAME", "VisibleLease"]

LEASE_NAME = "airflow-elastic-controller"
_RENEW_SECONDS = 10.0
_DURATION_SECONDS = 30
_MERGE_PATCH = "application/merge-patch+json"
_PLACE = "showing the leader in a Lease"


class VisibleLease:
    """Renewed now and then while this process leads; a failure costs a line in the log, no more."""

    def __init__(
        self,
        api: ClusterCalls,
        holder: str,
        complaints: Complaints,
        wall_clock: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        self._api = api
        self._holder = holder
        self._complaints = complaints
        self._wall = wall_clock
        self._monotonic = monotonic
        self._renewed_at = float("-inf")
        self._held_in = ""

    def renew(self, namespace: str, token: int) -> None:
        """Write holder, time and token (as ``leaseTransitions``) where the last time is some seconds ago."""
        if self._held_in == namespace and self._monotonic() - self._renewed_at < _RENEW_SECONDS:
            return
        self._renewed_at, self._held_in = self._monotonic(), namespace
        now = datetime.fromtimestamp(self._wall(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        self._write(
            namespace,
            {
                "holderIdentity": self._holder,
                "leaseDurationSeconds": _DURATION_SECONDS,
                "renewTime": now,
                "leaseTransitions": token,
            },
        )

    def release(self) -> None:
        """Take the holder out."""
        namespace, self._held_in = self._held_in, ""
        if namespace:
            self._write(namespace, {"holderIdentity": ""})

    def _write(self, namespace: str, spec: dict[str, Any]) -> None:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        try:
            status, answer = self._api.call("PATCH", f"{path}/{LEASE_NAME}", {"spec": spec}, content_type=_MERGE_PATCH)
            if status == 404:
                metadata = {"name": LEASE_NAME, "namespace": namespace, "labels": {LABEL_MANAGED_BY: MANAGED_BY}}
                body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
                status, answer = self._api.call("POST", path, body)
        except TemporaryError as error:
            self._complaints.failed(_PLACE, error)
            return
        if status >= 300 and status != 409:
            self._complaints.failed(
                _PLACE, f"{status}: {answer.get('message', '')}; allow get, create, patch on leases"
            )
        else:
            self._complaints.went_well(_PLACE)
