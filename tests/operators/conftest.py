from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_elastic.model.capacity_class import CapacityClass
from airflow_elastic.model.node_pool import CapacityType, NodePool, Taint
from airflow_elastic.model.resources import Resources
from airflow_elastic.model.settings import Mode, Settings

NODE = Resources.parse({"cpu": "4", "memory": "8Gi", "pods": 20})
SLOT = Resources.parse({"cpu": "1", "memory": "1Gi"})


@pytest.fixture
def settings() -> Settings:
    return Settings(
        node_pools=(
            NodePool("fixed", (("example.org/pool", "fixed"),), NODE, 1, 2, 30.0, 60.0, 0.65, CapacityType.RESERVED),
            NodePool(
                "elastic",
                (("example.org/pool", "elastic"),),
                NODE,
                0,
                6,
                90.0,
                180.0,
                taints=(Taint("example.org/elastic", "yes"),),
            ),
        ),
        classes=(
            CapacityClass("core", ("fixed",), "core_pool", SLOT, priority_class="core-first"),
            CapacityClass("burst", ("elastic", "fixed"), "burst_pool", SLOT, evictable=True),
        ),
        mode=Mode.MANAGE,
        default_class="burst",
    )


UseSettings = Callable[..., Settings]


@pytest.fixture
def use_settings(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> UseSettings:
    """Put settings in force for operators and policies, as a capacity file would; changes are given by keyword."""

    def use(current: Settings | None = settings, **changes: Any) -> Settings | None:
        current = replace(current, **changes) if current else None
        monkeypatch.setattr("airflow_elastic.config.current_settings", lambda: current)
        return current

    return use


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_elastic.config.current_settings", lambda: None)
    monkeypatch.setattr("airflow_elastic.operators.launching._tags", {})
    monkeypatch.setattr("airflow_elastic.operators.current._said", set())


NODE_SIZE = {"cpu": "4", "memory": "8Gi", "pods": "20"}


@pytest.fixture(scope="session")
def operators_cluster() -> Iterator[Any]:
    """A cluster whose machines boot and go in a blink; the pods' programs run in true time."""
    from airflow_elastic.embedded import ClusterConfig, EmbeddedCluster, NodePoolConfig

    pools = [
        NodePoolConfig(name, {"example.org/pool": name}, allocatable=NODE_SIZE, min_nodes=count, max_nodes=4, **more)
        for name, count, more in (
            ("fixed", 1, {}),
            ("elastic", 2, {"taints": [{"key": "example.org/elastic", "value": "yes", "effect": "NoSchedule"}]}),
            ("foreign", 1, {}),
        )
    ]
    with EmbeddedCluster(ClusterConfig(node_pools=pools, lost_node_seconds=200.0), time_speed=1000) as running:
        yield running


@pytest.fixture
def task(
    operators_cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use_settings: UseSettings
) -> Iterator[Any]:
    """A task of the capacity classes of ``settings`` on the cluster, with a triggerer that remembers."""
    from kubernetes import client, config
    from operators_cluster import TaskOnCluster

    from airflow_elastic.triggers.pod import ElasticKubernetesPodTrigger

    kubeconfig = operators_cluster.write_kubeconfig(tmp_path / "kubeconfig")
    core = client.CoreV1Api(config.new_client_from_config(str(kubeconfig)))
    scheduling = client.SchedulingV1Api(core.api_client)
    names = {each.metadata.name for each in scheduling.list_priority_class().items}
    if "core-first" not in names:
        metadata = client.V1ObjectMeta(name="core-first")
        scheduling.create_priority_class(client.V1PriorityClass(metadata=metadata, value=1000))
    remembered: dict[str, Any] = {}

    class Memory:
        def __init__(self, *_: Any) -> None: ...

        async def recall(self) -> list[Any]:
            return list(remembered.get("lost", ()))

        async def note(self, lost: list[Any], next_pod: str) -> None:
            remembered.update(lost=list(lost), pod_name=next_pod)

    monkeypatch.setattr("airflow_elastic.triggers.pod.XComMemory", Memory)
    monkeypatch.setattr(ElasticKubernetesPodTrigger, "minimum_dwell_seconds", 0.0)
    use_settings()
    found = TaskOnCluster(operators_cluster, core, kubeconfig, tmp_path)
    yield found
    found.close()
