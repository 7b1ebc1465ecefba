"""Hundreds of random operations: what must hold, holds all along and at the end."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from embedded_helpers import Api, cluster_of, facts, until
from kubernetes import client

from airflow_elastic.embedded import AutoscalerConfig, NodePoolConfig
from airflow_elastic.model.resources import parse_quantity

POOLS = (
    NodePoolConfig("fixed", initial_nodes=2, min_nodes=1, max_nodes=4, boot_seconds_median=20, remove_seconds=5),
    NodePoolConfig(
        "auto", max_nodes=3, boot_seconds_median=20, autoscaler=AutoscalerConfig(scan_seconds=5, empty_seconds=20)
    ),
)


def tolerate(action: Callable[[], Any], *codes: int) -> None:
    """Do something that may be refused with one of the codes."""
    try:
        action()
    except client.ApiException as error:
        if error.status not in codes:
            raise


class Life:
    """Random use of one cluster."""

    def __init__(self, api: Api, seed: int) -> None:
        self.api = api
        self.rng = random.Random(seed)
        self.number = 0

    def step(self) -> None:
        actions = [self.create] * 6 + [self.delete] * 2 + [self.scale, self.cordon, self.fail, self.take, self.evict]
        with suppress(LookupError):
            # Something may be gone or limited meanwhile; any other refusal is a mistake of the cluster.
            tolerate(self.rng.choice(actions), 404, 409, 422, 429)

    def create(self) -> None:
        self.number += 1
        priority = self.rng.choice([None, None, "low", "high"])
        options: dict[str, Any] = {"priorityClassName": priority} if priority else {}
        if self.rng.random() < 0.2:
            options["nodeSelector"] = {"airflow-elastic.io/node-pool": self.rng.choice(["fixed", "auto"])}
        seconds = self.rng.choice([0, 0.01, 0.1, 30])
        notes = {"airflow-elastic.io/term-seconds": str(self.rng.choice([0, 0.02]))}
        cpu = self.rng.choice(["100m", "1", "2500m"])
        self.api.create(f"p{self.number}", cpu=cpu, run_seconds=seconds, annotations=notes, **options)

    def delete(self) -> None:
        self.api.core.delete_namespaced_pod(f"p{self.rng.randint(1, self.number + 1)}", "default")

    def evict(self) -> None:
        name = f"p{self.rng.randint(1, self.number + 1)}"
        self.api.core.create_namespaced_pod_eviction(name, "default", {"metadata": {"name": name}})

    def scale(self) -> None:
        self.api.scale("fixed", self.rng.randint(0, 5))

    def node(self) -> str:
        names = self.api.node_names()
        if not names:
            raise LookupError
        return self.rng.choice(names)

    def cordon(self) -> None:
        self.api.core.patch_node(self.node(), {"spec": {"unschedulable": self.rng.choice([True, None])}})

    def fail(self) -> None:
        self.api.cluster.fail_node(self.node())

    def take(self) -> None:
        if self.rng.random() < 0.5:
            self.api.cluster.remove_node(self.node())
        else:
            self.api.core.delete_node(self.node())


def check_room(api: Api) -> None:
    """No node holds more than it has, as seen in one look at the stores."""
    plane = api.cluster._plane
    assert plane is not None

    def look(_: Any) -> tuple[list[Any], list[Any]]:
        return (
            [entry.obj for entry in plane.store("pods").values()],
            [entry.obj for entry in plane.store("nodes").values()],
        )

    pods, nodes = api.cluster._call(look)
    taken: dict[str, int] = defaultdict(int)
    for pod in pods:
        if pod["status"]["phase"] in ("Pending", "Running") and pod["spec"].get("nodeName"):
            request = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
            taken[pod["spec"]["nodeName"]] += parse_quantity(request, resource="cpu")
    room = {node["metadata"]["name"]: 4000 for node in nodes}
    assert set(taken) <= set(room), "a pod is bound to a node that does not exist"
    assert all(taken[name] <= room[name] for name in taken)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_use(seed: int, tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    with cluster_of(*POOLS, event_log=log, time_speed=1000.0, lost_node_seconds=30.0, seed=seed) as cluster:
        api = Api(cluster)
        api.priority_class("low", -5)
        api.priority_class("high", 100)
        life = Life(api, seed)
        for number in range(250):
            life.step()
            if number % 10 == 0:
                check_room(api)
        settle(api)
        check_room(api)
        api.close()
    check_log(log)


def settle(api: Api) -> None:
    """Delete all pods; everything that was taken is free again, and pools have what they ask for."""
    for pod in api.core.list_namespaced_pod("default").items:
        name = pod.metadata.name
        tolerate(lambda name=name: api.core.delete_namespaced_pod(name, "default", grace_period_seconds=0), 404)
    for name in api.node_names():
        tolerate(lambda name=name: api.core.patch_node(name, {"spec": {"unschedulable": None}}), 404)
    until(lambda: api.core.list_namespaced_pod("default").items == [])

    def calm() -> bool:
        pools = [api.pool(name) for name in ("fixed", "auto")]
        counts = [(p["spec"]["replicas"], p["status"]["readyReplicas"], p["status"]["removingReplicas"]) for p in pools]
        return all(wanted == ready and not removing for wanted, ready, removing in counts)

    until(calm)
    plane = api.cluster._plane
    assert plane is not None
    infos = api.cluster._call(lambda _: list(plane.scheduler.node_infos().values()))
    assert all(info.free == info.allocatable and not info.pods for info in infos)
    until(lambda: api.pool("auto")["spec"]["replicas"] == 0)
    api.create("after", run_seconds=0, cpu="1")
    api.until_phase("after", "Succeeded")


def check_log(log: Path) -> None:
    """The record is in order: machines and pods have one life each."""
    nodes: dict[str, list[str]] = defaultdict(list)
    pods: dict[str, list[str]] = defaultdict(list)
    for line in facts(log):
        if line["kind"].startswith("node_"):
            nodes[line["node"]].append(line["kind"])
        elif line["kind"].startswith("pod_"):
            pods[line["uid"]].append(line["kind"])
    for kinds in nodes.values():
        assert kinds[0] == "node_launch_requested"
        assert kinds.count("node_deleted") <= 1
        assert "node_deleted" not in kinds[:-1]
    for kinds in pods.values():
        assert kinds[0] == "pod_created"
        assert kinds[-1] == "pod_deleted" or kinds.count("pod_deleted") == 0
        for once in ("pod_bound", "pod_running", "pod_finished", "pod_unschedulable"):
            assert kinds.count(once) <= 1, kinds
        order = [kind for kind in kinds if kind in ("pod_bound", "pod_running", "pod_finished")]
        assert order in (
            [], ["pod_bound"], ["pod_bound", "pod_running"], ["pod_bound", "pod_running", "pod_finished"],
            ["pod_bound", "pod_finished"],
        )  # fmt: skip
