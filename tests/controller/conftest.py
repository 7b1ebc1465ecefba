from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from controller_world import World, scaled_pool, settings_of

from airflow_elastic.embedded import AutoscalerConfig, ClusterConfig, EmbeddedCluster, NodePoolConfig
from airflow_elastic.kubernetes.client import ClusterApi, api_client_for
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.testing.fakes import FakeAirflow, FakeLeader, FakeSettings, MemoryStore


@pytest.fixture
def make_world() -> Iterator[Callable[..., World]]:
    made: list[World] = []

    def make(pool: NodePool | None = None, *, autoscaled: bool = False, nodes: int = 0, boot: float = 0.3) -> World:
        pool = pool or scaled_pool()
        autoscaler = AutoscalerConfig(scan_seconds=0.2, empty_seconds=0.5) if autoscaled else None
        config = NodePoolConfig(
            pool.name, allocatable={"cpu": "4", "memory": "8Gi", "pods": "20"}, min_nodes=0, max_nodes=6,
            initial_nodes=nodes, boot_seconds_median=boot, boot_seconds_p95=boot, remove_seconds=0.1,
            autoscaler=autoscaler,
        )  # fmt: skip
        cluster = EmbeddedCluster(ClusterConfig(node_pools=[config], lost_node_seconds=3.0))
        cluster.start()
        leader = FakeLeader()
        world = World(
            cluster,
            ClusterApi(api_client_for(cluster.url)),
            FakeSettings(settings_of(pool)),
            FakeAirflow(leader=leader),
            MemoryStore(leader=leader),
            leader,
        )
        made.append(world)
        return world

    yield make
    for world in made:
        for view in world.views:
            view.stop()
        world.cluster.stop()
