"""Clients and waiting for the tests of the embedded cluster."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kubernetes import client

from airflow_elastic.embedded import ClusterConfig, EmbeddedCluster, NodePoolConfig

__all__ = ["Api", "cluster_of", "facts", "pod_body", "until"]


def until(condition: Callable[[], Any], seconds: float = 8.0) -> Any:
    """Return the first true value of the condition; fails when it takes too long."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.005)
    raise AssertionError(f"did not become true within {seconds} s: {condition()!r}")


def cluster_of(*pools: NodePoolConfig, **options: Any) -> EmbeddedCluster:
    """Return a cluster whose machines boot a thousand times faster; not started."""
    config = {name: options.pop(name) for name in list(options) if name not in ("event_log", "time_speed", "seed")}
    options.setdefault("time_speed", 1000.0)
    return EmbeddedCluster(ClusterConfig(node_pools=pools, **config), **options)


def pod_body(
    name: str,
    *,
    command: list[str] | None = None,
    run_seconds: float | None = None,
    cpu: str | None = None,
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    container: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """Return a pod with one container named base."""
    notes = dict(annotations or {})
    if run_seconds is not None:
        notes["airflow-elastic.io/run-seconds"] = str(run_seconds)
    base: dict[str, Any] = {"name": "base", "image": "example/image:1", **(container or {})}
    if command is not None:
        base["command"] = command
    if cpu is not None:
        base["resources"] = {"requests": {"cpu": cpu}}
    return {
        "metadata": {"name": name, "annotations": notes, "labels": labels or {}},
        "spec": {"restartPolicy": "Never", "containers": [base], **spec},
    }


class Api:
    """The real client, pointed at one cluster."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.cluster = cluster
        configuration = client.Configuration()
        configuration.host = cluster.url
        self.client = client.ApiClient(configuration)
        self.core = client.CoreV1Api(self.client)
        self.custom = client.CustomObjectsApi(self.client)
        self.scheduling = client.SchedulingV1Api(self.client)
        self.policy = client.PolicyV1Api(self.client)
        self.coordination = client.CoordinationV1Api(self.client)

    def close(self) -> None:
        self.client.close()

    def create(self, name: str, namespace: str = "default", **options: Any) -> Any:
        return self.core.create_namespaced_pod(namespace, pod_body(name, **options))

    def pod(self, name: str) -> Any:
        """Return a pod, None when it does not exist."""
        try:
            return self.core.read_namespaced_pod(name, "default")
        except client.ApiException as error:
            if error.status == 404:
                return None
            raise

    def phase(self, name: str) -> str | None:
        pod = self.pod(name)
        return pod.status.phase if pod else None

    def until_phase(self, name: str, phase: str | None) -> Any:
        until(lambda: self.phase(name) == phase)
        return self.pod(name)

    def log(self, name: str, **options: Any) -> str:
        return str(self.core.read_namespaced_pod_log(name, "default", _preload_content=False, **options).data.decode())

    def nodes(self) -> list[Any]:
        return list(self.core.list_node().items)

    def node_names(self) -> list[str]:
        return [node.metadata.name for node in self.nodes()]

    def ready_nodes(self) -> list[str]:
        return [
            node.metadata.name
            for node in self.nodes()
            if any(c.type == "Ready" and c.status == "True" for c in node.status.conditions)
        ]

    def scale(self, pool: str, replicas: int) -> Any:
        return self.custom.patch_cluster_custom_object_scale(
            "embedded.airflow-elastic.io", "v1", "nodepools", pool, {"spec": {"replicas": replicas}}
        )

    def pool(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.custom.get_cluster_custom_object(
            "embedded.airflow-elastic.io", "v1", "nodepools", name
        )
        return found

    def events(self, name: str) -> list[tuple[str, str]]:
        selector = f"involvedObject.name={name}"
        items = self.core.list_namespaced_event("default", field_selector=selector).items
        return [(event.reason, event.message) for event in items]

    def reasons(self, name: str) -> list[str]:
        return [reason for reason, _ in self.events(name)]

    def priority_class(self, name: str, value: int, policy: str = "PreemptLowerPriority") -> None:
        self.scheduling.create_priority_class(
            {"metadata": {"name": name}, "value": value, "preemption_policy": policy, "preemptionPolicy": policy}
        )


def facts(path: Path, *kinds: str) -> list[dict[str, Any]]:
    """Return the lines of an event log, of the named kinds if any."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in lines if not kinds or line["kind"] in kinds]
