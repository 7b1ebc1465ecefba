"""The few calls of Airflow's REST API that the demo makes, with the standard library only."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import quote

from airflow_elastic.errors import TemporaryError

__all__ = ["AirflowApi"]

_ASKING_DIRECTLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class AirflowApi:
    """Airflow's API server at ``url``, which lets everybody in as an admin (the demo's auth manager)."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._token = ""

    def call(self, method: str, path: str, body: object = None, *, timeout_seconds: float = 20.0) -> Any:
        """Send one request and return the decoded answer.

        Raises:
            TemporaryError: no connection, or an answer other than 2xx.
        """
        if not self._token and path != "/auth/token":
            self._token = self.call("GET", "/auth/token")["access_token"]
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Content-Type": "application/json",
                **({"Authorization": f"Bearer {self._token}"} if self._token else {}),
            },
        )
        try:
            with _ASKING_DIRECTLY.open(request, timeout=timeout_seconds) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")[:500]
            raise TemporaryError(f"Airflow's API answered {error.code} to {method} {path}: {text}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise TemporaryError(f"Airflow's API does not answer {method} {path}: {error}") from None

    def unhealthy(self) -> list[str]:
        """Return the names of Airflow's parts that do not report themselves healthy.

        Raises:
            TemporaryError: the API server does not answer yet.
        """
        health = self.call("GET", "/api/v2/monitor/health", timeout_seconds=5.0)
        parts = ("metadatabase", "scheduler", "triggerer", "dag_processor")
        return [part for part in parts if (health.get(part) or {}).get("status") != "healthy"]

    def dag_ids(self) -> set[str]:
        """Return the DAGs that have been parsed."""
        return {dag["dag_id"] for dag in self.call("GET", "/api/v2/dags?limit=100")["dags"]}

    def import_errors(self) -> dict[str, str]:
        """Return the DAG files that could not be imported, with the reason."""
        answer = self.call("GET", "/api/v2/importErrors?limit=100")
        return {error["filename"]: error["stack_trace"] for error in answer["import_errors"]}

    def pause(self, dag_id: str, paused: bool) -> None:
        """Pause or unpause a DAG."""
        self.call("PATCH", f"/api/v2/dags/{quote(dag_id)}?update_mask=is_paused", {"is_paused": paused})

    def set_pool(self, name: str, slots: int) -> None:
        """Create a pool that counts deferred tasks too."""
        self.call("POST", "/api/v2/pools", {"name": name, "slots": slots, "include_deferred": True})
