"""The two clusters under one face."""

from __future__ import annotations

import secrets
import signal
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

from realcluster.cluster import RealCluster
from realcluster.images import BUSYBOX_IMAGE

from airflow_elastic.embedded import ClusterConfig, EmbeddedCluster, NodePoolConfig
from conformance.rest import MERGE, Object, Rest
from conformance.shapes import SHAPES

__all__ = ["Cluster", "EmbeddedUnderTest", "RealUnderTest", "until"]

OWN_LABEL = "conformance.airflow-elastic.io/node"
_POOLS = "/apis/embedded.airflow-elastic.io/v1/nodepools"
_STATIC_POOLS = "/apis/karpenter.sh/v1/nodepools"
# Changes that the embedded cluster keeps: few, so that a test can have one forgotten.
_HISTORY = 300


def until(condition: Callable[[], Any], seconds: float = 20.0, what: str = "") -> Any:
    """Return the first true value of a condition.

    Raises:
        AssertionError: it takes too long.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s: {what or condition}")


class Cluster(ABC):
    """What tests do that is not in the API, and the API."""

    name: str
    rest: Rest
    kubeconfig: Path
    image = BUSYBOX_IMAGE
    process_node: str
    """A node whose pods are real processes."""

    def __init__(self) -> None:
        self._nodes: list[str] = []

    @abstractmethod
    def _make_node(self, shape: str) -> str: ...

    @abstractmethod
    def _drop_node(self, name: str) -> None: ...

    @abstractmethod
    def lose(self, node: str) -> None:
        """Let the machine of a node die without a word."""

    @abstractmethod
    def forgotten(self, namespace: str) -> tuple[str, str]:
        """Return a resource's path and a version whose changes the server no longer knows."""

    @abstractmethod
    def scalable(self) -> str:
        """Return the path of a custom object with a scale subresource; it is fresh, and goes after the test."""

    def node(self, shape: str = "plain", **labels: str) -> str:
        """Return a fresh Ready node that only pods with `placed` on it use; it goes after the test."""
        name = self._make_node(shape)
        self._nodes.append(name)
        path = f"/api/v1/nodes/{name}"
        until(lambda: _is_ready(self.rest.get(path)), 30, f"node {name} is Ready")
        patched = self.rest.patch(path, {"metadata": {"labels": {OWN_LABEL: name, **labels}}}, MERGE)
        assert patched.code == 200, patched
        return name

    def drop_nodes(self) -> None:
        """Remove the nodes of a test."""
        while self._nodes:
            self._drop_node(self._nodes.pop())

    def events(self, namespace: str, name: str) -> list[Object]:
        """Return the events about an object, oldest first."""
        selector = f"involvedObject.name={name}"
        items: list[Object] = self.rest.get(f"/api/v1/namespaces/{namespace}/events", fieldSelector=selector).body[
            "items"
        ]
        return sorted(items, key=lambda event: int(event["metadata"]["resourceVersion"]))


class EmbeddedUnderTest(Cluster):
    """The embedded cluster, in this process."""

    name = "embedded"

    def __init__(self) -> None:
        super().__init__()
        pools = [
            NodePoolConfig(
                shape_name, labels=shape.labels, allocatable=shape.allocatable, max_nodes=20,
                boot_seconds_median=0.02, remove_seconds=0,
            )
            for shape_name, shape in SHAPES.items()
        ]  # fmt: skip
        scalable = NodePoolConfig(
            "scalable", boot_seconds_median=0.02, remove_seconds=0,
            taints=[{"key": OWN_LABEL, "value": "scalable", "effect": "NoSchedule"}],
        )  # fmt: skip
        processes = NodePoolConfig("process", initial_nodes=1)
        # A lost node is NotReady at once here; its object goes after the time that a test waits for on the real one.
        config = ClusterConfig(node_pools=(*pools, scalable, processes), lost_node_seconds=600, history=_HISTORY)
        self._cluster = EmbeddedCluster(config)
        self._cluster.start()
        self._folder = tempfile.TemporaryDirectory(prefix="conformance-")
        self.kubeconfig = self._cluster.write_kubeconfig(Path(self._folder.name) / "kubeconfig")
        self.rest = Rest.of(self.kubeconfig)
        self.process_node = self.rest.get("/api/v1/nodes").names[0]

    def stop(self) -> None:
        """End it."""
        self._cluster.stop()
        self._folder.cleanup()

    def lose(self, node: str) -> None:
        self._cluster.fail_node(node)

    def forgotten(self, namespace: str) -> tuple[str, str]:
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        version = self.rest.get(path).version
        self.rest.made(path, {"metadata": {"name": "changing"}})
        for number in range(3 * _HISTORY):
            self.rest.patch(f"{path}/changing", {"data": {"value": str(number)}})
        return path, version

    def scalable(self) -> str:
        return f"{_POOLS}/scalable"

    def _make_node(self, shape: str) -> str:
        before = set(self.rest.get("/api/v1/nodes").names)
        self._scale(shape, +1)
        made = until(lambda: set(self.rest.get("/api/v1/nodes").names) - before)
        return str(made.pop())

    def _drop_node(self, name: str) -> None:
        found = self.rest.get(f"/api/v1/nodes/{name}")
        if found.code == 404:
            return
        annotations = {"metadata": {"annotations": {"airflow-elastic.io/release": "true"}}}
        self.rest.patch(f"/api/v1/nodes/{name}", annotations)
        self._scale(found.body["metadata"]["labels"]["airflow-elastic.io/node-pool"], -1)
        until(lambda: self.rest.get(f"/api/v1/nodes/{name}").code == 404)

    def _scale(self, pool: str, change: int) -> None:
        replicas = self.rest.get(f"{_POOLS}/{pool}").body["spec"]["replicas"] + change
        assert self.rest.patch(f"{_POOLS}/{pool}/scale", {"spec": {"replicas": replicas}}).code == 200


class RealUnderTest(Cluster):
    """The real cluster: simulated nodes for placing, one real node for processes."""

    name = "real"
    process_node = "r1"

    def __init__(self, cluster: RealCluster) -> None:
        super().__init__()
        self.cluster = cluster
        self._pools: list[str] = []
        self._silent = False
        self.kubeconfig = cluster.kubeconfig()
        self.rest = Rest.of(self.kubeconfig)

    def forgotten(self, namespace: str) -> tuple[str, str]:
        # What is kept begins with the definition of a custom resource, long after the cluster's first version.
        return "/apis/karpenter.sh/v1/nodepools", "1"

    def lose(self, node: str) -> None:
        # All simulated nodes are silent then; the test has no other.
        self.cluster.signal("kwok", signal.SIGSTOP)
        self._silent = True

    def scalable(self) -> str:
        name = f"static-{secrets.token_hex(3)}"
        node_class = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": name}
        self.rest.made(
            "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses",
            {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": name}},
        )
        requirements = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["c-4x-amd64-linux"]}]
        # Nobody tolerates the taint: pods of other tests stay away.
        taints = [{"key": OWN_LABEL, "value": name, "effect": "NoSchedule"}]
        self.rest.made(
            _STATIC_POOLS,
            {
                "apiVersion": "karpenter.sh/v1",
                "kind": "NodePool",
                "metadata": {"name": name},
                "spec": {
                    "replicas": 0,
                    "template": {"spec": {"nodeClassRef": node_class, "requirements": requirements, "taints": taints}},
                },
            },
        )
        self._pools.append(name)
        return f"{_STATIC_POOLS}/{name}"

    def drop_nodes(self) -> None:
        super().drop_nodes()
        if self._silent:
            self.cluster.signal("kwok", signal.SIGCONT)
            self._silent = False
        while self._pools:
            self.rest.delete(f"{_STATIC_POOLS}/{self._pools.pop()}")

    def _make_node(self, shape: str) -> str:
        name = f"{shape}-{secrets.token_hex(3)}"
        offered = SHAPES[shape]
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        self.rest.made(
            "/api/v1/nodes",
            {
                "metadata": {
                    "name": name,
                    "labels": {**labels, **offered.labels},
                    "annotations": {"kwok.x-k8s.io/node": "fake"},
                },
                "status": {"capacity": offered.allocatable, "allocatable": offered.allocatable},
            },
        )
        return name

    def _drop_node(self, name: str) -> None:
        self.rest.delete(f"/api/v1/nodes/{name}")


def _is_ready(answer: Any) -> bool:
    if answer.code != 200:
        return False
    conditions = answer.body["status"].get("conditions") or []
    taints = answer.body["spec"].get("taints") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions) and not taints
