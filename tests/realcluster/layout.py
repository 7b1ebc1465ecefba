"""What a cluster is asked to be, where its files are, and which addresses it uses."""

from __future__ import annotations

import dataclasses
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = [
    "API_URL", "CONTROL_PLANE_IP", "FAKE_NODE_ANNOTATION", "SERVICE_IP", "ClusterOptions", "Layout", "real_node_ip",
]  # fmt: skip

# All of these are on the loopback device of the cluster's own network namespace.
API_URL = "https://127.0.0.1:443"
SERVICE_IP = "10.0.0.1"
"""Where pods find the API server: it listens there itself, so that no kube-proxy is needed."""
CONTROL_PLANE_IP = "10.99.0.1"

FAKE_NODE_ANNOTATION = "kwok.x-k8s.io/node"
"""Nodes with the value ``fake`` are simulated; all others have a kubelet."""


def real_node_ip(number: int) -> str:
    """Return the address of a real node (1, 2, …)."""
    return f"10.99.0.{10 + number}"


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """What a cluster consists of beside its control plane."""

    real_nodes: int = 1
    """Nodes named r1, r2, … with a kubelet, containerd and runc each. They share this machine."""
    fake_nodes: bool = True
    """Whether kwok runs nodes that carry `FAKE_NODE_ANNOTATION`."""
    karpenter: bool = False
    arguments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """More arguments by component, e.g. ``{"kube-apiserver": ("--v=4",)}``."""

    def to_json(self) -> str:
        """Return what `from_json` reads."""
        return json.dumps(dataclasses.asdict(self))

    @staticmethod
    def from_json(text: str) -> ClusterOptions:
        """Return the options of another process."""
        values = json.loads(text)
        values["arguments"] = {name: tuple(more) for name, more in values["arguments"].items()}
        return ClusterOptions(**values)


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of one cluster."""

    root: Path
    programs: Path
    """The folder that `build` made."""

    @property
    def bin(self) -> Path:
        """Programs."""
        return self.programs / "bin"

    @property
    def pki(self) -> Path:
        """Keys and certificates."""
        return self.root / "pki"

    @property
    def logs(self) -> Path:
        """One log per component."""
        return self.root / "log"

    @property
    def pids(self) -> Path:
        """One file per component with its process id as seen inside."""
        return self.root / "pid"

    @property
    def holds(self) -> Path:
        """A file named like a component here keeps it from being started again."""
        return self.root / "hold"

    @property
    def audit_log(self) -> Path:
        """One line of JSON per request of a service account of the tests."""
        return self.root / "audit.jsonl"

    @property
    def ready(self) -> Path:
        """Exists when the cluster can be used: seconds by step, as JSON."""
        return self.root / "ready.json"

    @property
    def lock(self) -> Path:
        """Locked as long as the cluster lives."""
        return self.root / "lock"

    @property
    def cgroup(self) -> str:
        """The name of the cluster's control groups."""
        return f"airflow-elastic-rc-{zlib.crc32(str(self.root).encode()):08x}"

    def cgroups(self) -> list[Path]:
        """Return the cluster's group in each of the kernel's hierarchies, made or not."""
        roots = sorted(path for path in Path("/sys/fs/cgroup").iterdir() if path.is_dir() and not path.is_symlink())
        return [path / self.cgroup for path in roots]

    def kubeconfig(self, user: str) -> Path:
        """Return a user's kubeconfig, as it is used inside the namespaces."""
        return self.root / "kubeconfig" / user

    def outside_kubeconfig(self, user: str) -> Path:
        """Return a user's kubeconfig for processes outside, which reach the API server by the forwarded port."""
        return self.root / "outside" / user

    def node(self, number: int) -> Path:
        """Return the folder of a real node."""
        return self.root / f"r{number}"
