from __future__ import annotations

from typing import Any

import pytest

from airflow_elastic.embedded import AutoscalerConfig, ClusterConfig, EmbeddedCluster, NodePoolConfig, load_config
from airflow_elastic.errors import ConfigurationError, TemporaryError


def test_yaml_and_json() -> None:
    text = """
    scoring: most-allocated
    node_pools:
    - name: burst
      labels: {tier: burst}
      taints: [{key: burst, effect: NoSchedule}]
      allocatable: {cpu: "8", nvidia.com/gpu: 1}
      max_nodes: 7
      boot_seconds_median: 90
      autoscaler: {scan_seconds: 5}
    """
    config = load_config(text)
    (pool,) = config.node_pools
    assert config.scoring == "most-allocated"
    assert (pool.name, pool.max_nodes, pool.slow_boot_seconds, pool.starting_nodes) == ("burst", 7, 180, 0)
    assert pool.allocatable["cpu"] == "8"
    assert pool.allocatable["pods"] == "30"
    assert pool.autoscaler == AutoscalerConfig(scan_seconds=5)
    assert load_config('{"node_pools": [{"name": "a"}]}') == ClusterConfig(node_pools=(NodePoolConfig("a"),))
    assert load_config("") == ClusterConfig()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("node_pool: []", "did you mean 'node_pools'"),
        ("node_pools: [{nam: a}]", "did you mean 'name'"),
        ("node_pools: [{max_nodes: 3}]", "name is missing"),
        ("node_pools: [{name: UPPER}]", "lower-case"),
        ("node_pools: [{name: a}, {name: a}]", "named twice: a"),
        ("node_pools: [{name: a, min_nodes: 3, max_nodes: 2}]", "0 ≤ min_nodes ≤ max_nodes"),
        ("node_pools: [{name: a, initial_nodes: 30}]", "initial_nodes 30"),
        ("node_pools: [{name: a, allocatable: {cpu: lots}}]", "allocatable cpu"),
        ("node_pools: [{name: a, taints: [{key: x}]}]", "effect"),
        ("node_pools: [{name: a, boot_seconds_median: -1}]", "boot_seconds_median is -1"),
        ("node_pools: [{name: a, boot_seconds_median: .inf}]", "boot_seconds_median is inf"),
        ("node_pools: [{name: a, boot_seconds_p95: 1}]", "boot_seconds_p95 is less"),
        ("node_pools: [{name: a, max_nodes: many}]", "wrong type"),
        ("node_pools: [{name: a, autoscaler: {scan_seconds: 0}}]", "scan_seconds is 0"),
        ("node_pools: [{name: a, autoscaler: {scan_second: 1}}]", "did you mean 'scan_seconds'"),
        ("node_pools: 3", "must be a list"),
        ("scoring: best", "write least-allocated or most-allocated"),
        ("- a", "expected keys and values"),
        ("a: [", "not YAML"),
    ],
)
def test_mistakes_are_named(data: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said.replace("[", r"\[")):
        load_config(data)


@pytest.mark.parametrize("speed", [0, -1, float("nan")])
def test_time_speed_is_positive(speed: Any) -> None:
    with pytest.raises(ConfigurationError, match="time_speed"):
        EmbeddedCluster(time_speed=speed)


def test_a_taken_port_is_told() -> None:
    with EmbeddedCluster() as first:
        second = EmbeddedCluster(port=int(first.url.rsplit(":", 1)[1]))
        with pytest.raises(TemporaryError, match="choose another port"):
            second.start()


def test_controls_need_a_running_cluster() -> None:
    cluster = EmbeddedCluster()
    with pytest.raises(TemporaryError, match="does not run"):
        cluster.fail_node("a")
    with cluster:
        pass
    cluster.stop()
    with pytest.raises(TemporaryError, match="does not run"):
        cluster.fail_node("a")
