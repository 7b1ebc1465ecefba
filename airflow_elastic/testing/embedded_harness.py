"""A harness for providers that speak to a Kubernetes API: an embedded cluster with one node pool."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import count
from types import TracebackType
from typing import Any

from airflow_elastic.controller.complaints import Complaints
from airflow_elastic.controller.learning import Learner
from airflow_elastic.controller.observe import Observer
from airflow_elastic.embedded import AutoscalerConfig, ClusterConfig, EmbeddedCluster, NodePoolConfig
from airflow_elastic.errors import TemporaryError
from airflow_elastic.kubernetes.client import ClusterApi, api_client_for
from airflow_elastic.kubernetes.cluster import ClusterView
from airflow_elastic.model.capacity_class import CapacityClass
from airflow_elastic.model.labels import ANNOTATION_RELEASE, LABEL_CAPACITY_CLASS, LABEL_PLACEHOLDER
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.resources import Resources, format_amount
from airflow_elastic.model.settings import Settings
from airflow_elastic.providers.base import ClusterCalls, PoolFacts, Provider
from airflow_elastic.testing.fakes import FakeAirflow

__all__ = ["EmbeddedHarness", "Switchable"]

_RUN_SECONDS = "airflow-elastic.io/run-seconds"


class Switchable:
    """The API server behind a switch."""

    def __init__(self, api: ClusterCalls) -> None:
        self._api = api
        self.is_silent = False
        self.calls: list[tuple[str, str]] = []
        """(method, path) of every call."""

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> tuple[int, dict[str, Any]]:
        """Call the API server, unless it is silenced."""
        self.calls.append((method, path))
        if self.is_silent:
            raise TemporaryError("the API server was silenced")
        return self._api.call(method, path, body, query, content_type)


class EmbeddedHarness:
    """Runs one node pool on an embedded cluster; use as a context manager."""

    def __init__(
        self,
        pool: NodePool,
        make_provider: Callable[[NodePool, ClusterCalls], Provider],
        *,
        autoscaler: AutoscalerConfig | None = None,
        boot_seconds: float = 0.3,
    ) -> None:
        self.pool = pool
        self._make_provider = make_provider
        allocatable = {name: format_amount(name, amount) for name, amount in pool.shape.amounts}
        config = NodePoolConfig(
            pool.name,
            labels=dict(pool.selector),
            allocatable=allocatable,
            max_nodes=pool.max_nodes,
            boot_seconds_median=boot_seconds,
            boot_seconds_p95=boot_seconds,
            remove_seconds=0.1,
            autoscaler=autoscaler,
        )
        self.cluster = EmbeddedCluster(ClusterConfig(node_pools=[config]))
        slot = Resources.of(cpu=1000)
        classes = (CapacityClass("burst", (pool.name,), "burst", slot, evictable=True),)
        self.settings = Settings(node_pools=(pool,), classes=classes)
        self._view = ClusterView()
        self._observer = Observer(self._view, FakeAirflow(), Learner(60.0), Complaints(time.monotonic))
        self._numbers = count()

    def __enter__(self) -> EmbeddedHarness:
        self.cluster.start()
        api = ClusterApi(api_client_for(self.cluster.url))
        self.api = Switchable(api)
        self._view.start(api, watch_seconds=5.0)
        end = time.monotonic() + 5.0
        while self._view.age_seconds() > 5.0 and time.monotonic() < end:
            time.sleep(0.005)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._view.stop()
        self.cluster.stop()

    @property
    def pool_name(self) -> str:
        """Return the node pool's name."""
        return self.pool.name

    @property
    def max_nodes(self) -> int:
        """Return the node pool's maximum."""
        return self.pool.max_nodes

    def provider(self) -> Provider:
        """Return a new provider object."""
        return self._make_provider(self.pool, self.api)

    def facts(self) -> PoolFacts:
        """Return what the watch sees now."""
        return self._observer.facts(self.settings)[self.pool.name]

    def run_task(self, node: str = "") -> str:
        """Start a task's pod of one CPU and return the node that it was bound to."""
        name = f"task-{next(self._numbers)}"
        requests = {"cpu": "1"}
        pod: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "labels": {LABEL_CAPACITY_CLASS: "burst"},
                "annotations": {_RUN_SECONDS: "600"},
            },
            "spec": {
                "nodeSelector": dict(self.pool.selector),
                "containers": [{"name": "base", "image": "busybox", "resources": {"requests": requests}}],
            },
        }
        if node:
            pod["spec"]["nodeName"] = node
        path = "/api/v1/namespaces/default/pods"
        self.api.call("POST", path, pod)
        end = time.monotonic() + 10.0
        while time.monotonic() < end:
            bound = self.api.call("GET", f"{path}/{name}")[1].get("spec", {}).get("nodeName")
            if bound:
                return str(bound)
            time.sleep(0.02)
        raise TemporaryError(f"pod {name} was not bound within 10 s")

    def leftovers(self) -> list[str]:
        """Return placeholders and marked nodes."""
        query = {"labelSelector": f"{LABEL_PLACEHOLDER}=true"}
        pods = self.api.call("GET", "/api/v1/pods", query=query)[1].get("items", ())
        nodes = self.api.call("GET", "/api/v1/nodes")[1].get("items", ())
        marked = [node for node in nodes if ANNOTATION_RELEASE in (node["metadata"].get("annotations") or {})]
        return sorted(each["metadata"]["name"] for each in (*pods, *marked))

    def silence(self) -> None:
        """From now on the API server does not answer the provider."""
        self.api.is_silent = True
