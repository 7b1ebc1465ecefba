"""How we reach the API server: the official client's configuration, plain JSON in and out, a time limit on every call.

Objects stay dicts: building the client's model objects costs more than everything else that we do with 10,000 pods.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from airflow_elastic.errors import ConfigurationError, TemporaryError

__all__ = ["ClusterApi", "Reply", "api_client_for", "make_api_client", "make_cluster_api"]

CONNECT_SECONDS = 5.0
READ_SECONDS = 15.0
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")

Reply = tuple[int, dict[str, Any]]
"""HTTP status and the JSON body (a Kubernetes ``Status`` object for refusals)."""


def make_api_client(conn_id: str = "") -> Any:
    """Return the official client's ``ApiClient`` for the cluster, every request of it limited in time.

    Tried in this order: the Airflow connection ``conn_id`` where one is named; otherwise the pod's service account,
    then the files of ``KUBECONFIG`` or ``~/.kube/config``.

    Raises:
        ConfigurationError: none of them leads to a cluster; the message says what was tried and what to do.
    """
    if conn_id:
        return _limited(_from_connection(conn_id))
    from kubernetes import client
    from kubernetes.config import ConfigException, load_incluster_config, load_kube_config

    configuration = client.Configuration()
    tried = []
    if _SERVICE_ACCOUNT.exists():
        try:
            load_incluster_config(client_configuration=configuration)
            return _limited(client.ApiClient(configuration))
        except ConfigException as error:
            tried.append(f"the pod's service account ({error})")
    else:
        tried.append("the pod's service account (this process runs in no pod)")
    try:
        # Named here: the client's own default is what the variable was when it was first imported.
        load_kube_config(os.environ.get("KUBECONFIG") or None, client_configuration=configuration)
        return _limited(client.ApiClient(configuration))
    except (ConfigException, OSError, ValueError, TypeError) as error:
        tried.append(f"KUBECONFIG or ~/.kube/config ({error})")
    raise ConfigurationError(
        f"no Kubernetes cluster is configured; tried {' and '.join(tried)}. "
        "Set KUBECONFIG, or name an Airflow connection in [elastic] kubernetes_conn_id"
    )


def api_client_for(host: str) -> Any:
    """Return an ``ApiClient`` for a plain address without credentials, as an embedded cluster has it."""
    from kubernetes import client

    configuration = client.Configuration()
    configuration.host = host
    return _limited(client.ApiClient(configuration))


def make_cluster_api(conn_id: str = "") -> ClusterApi:
    """Return the plain-JSON access to the cluster (see ``make_api_client`` for where it is looked for)."""
    return ClusterApi(make_api_client(conn_id))


class ClusterApi:
    """The API server in plain JSON. Safe to share between threads."""

    def __init__(self, api_client: Any) -> None:
        self._configuration = api_client.configuration
        self._pool = api_client.rest_client.pool_manager
        self._headers = {"Accept": "application/json", "User-Agent": "airflow-elastic"}

    @property
    def host(self) -> str:
        """Return the API server's address, for messages."""
        return str(self._configuration.host)

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Reply:
        """Send one request; return the status and body, refusals (404, 409, 422, …) included.

        Raises:
            TemporaryError: no answer within the time limit, or the server is overloaded or broken (429, 5xx).
        """
        try:
            reply = self._send(method, path, body, query, content_type, read_seconds=READ_SECONDS, stream=False)
            raw: bytes = reply.data
        except Exception as error:
            raise self._unreachable(method, path, error) from error
        status = int(reply.status)
        if status == 429 or status >= 500:
            raise TemporaryError(
                f"{method} {path} at {self.host} answered {status}: {_message(raw)}; tried again later"
            )
        try:
            document = json.loads(raw) if raw else {}
        except ValueError as error:
            raise TemporaryError(
                f"{method} {path} at {self.host} answered {status} with something that is not JSON; "
                "check that the address leads to a Kubernetes API server"
            ) from error
        return status, document if isinstance(document, dict) else {}

    @contextmanager
    def stream(self, path: str, query: Mapping[str, str], read_seconds: float) -> Iterator[Any]:
        """Open a long reply (a watch) and yield urllib3's response; silence for ``read_seconds`` raises.

        Raises:
            TemporaryError: it could not be opened.
        """
        try:
            reply = self._send("GET", path, None, query, "application/json", read_seconds=read_seconds, stream=True)
        except Exception as error:
            raise self._unreachable("GET", path, error) from error
        try:
            yield reply
        finally:
            # The rest of an unfinished stream cannot be reused by another request.
            reply.close()

    def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        query: Mapping[str, str] | None,
        content_type: str,
        *,
        read_seconds: float,
        stream: bool,
    ) -> Any:
        from urllib.parse import urlencode

        import urllib3

        headers = dict(self._headers)
        fields = dict(query or {})
        # Asked anew each time: the client renews service account tokens and exec credentials here.
        for setting in self._configuration.auth_settings().values():
            if setting.get("value"):
                target = headers if setting["in"] == "header" else fields
                target[setting["key"]] = setting["value"]
        content = None
        if body is not None:
            content = json.dumps(body, separators=(",", ":")).encode()
            headers["Content-Type"] = content_type
        url = f"{self.host}{path}" + (f"?{urlencode(fields)}" if fields else "")
        return self._pool.request(
            method,
            url,
            body=content,
            headers=headers,
            preload_content=not stream,
            timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=read_seconds),
            retries=False,
        )

    def _unreachable(self, method: str, path: str, error: Exception) -> TemporaryError:
        return TemporaryError(f"{method} {path}: the Kubernetes API at {self.host} does not answer ({_short(error)})")


def _from_connection(conn_id: str) -> Any:
    from airflow.providers.cncf.kubernetes.hooks.kubernetes import KubernetesHook

    try:
        return KubernetesHook(conn_id=conn_id).get_conn()
    except Exception as error:
        # The hook raises many kinds (missing connection, bad file, bad JSON): for the caller they are one.
        raise ConfigurationError(
            f"Airflow connection {conn_id!r} ([elastic] kubernetes_conn_id) leads to no cluster: {_short(error)}. "
            f"Check it with `airflow connections get {conn_id}`, or empty the option to use KUBECONFIG"
        ) from error


def _limited(api_client: Any) -> Any:
    """Give every request of an ``ApiClient`` a time limit where its caller gives none: the client's default is none."""
    unlimited = api_client.request

    def request(*args: Any, **options: Any) -> Any:
        if options.get("_request_timeout") is None:
            options["_request_timeout"] = (CONNECT_SECONDS, READ_SECONDS)
        return unlimited(*args, **options)

    api_client.request = request
    return api_client


def _message(raw: bytes) -> str:
    try:
        return str(json.loads(raw).get("message", ""))[:300]
    except (ValueError, AttributeError):
        return raw[:200].decode(errors="replace").strip()


def _short(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    return text if len(text) <= 300 else text[:299] + "…"
