"""The programs of a cluster and their arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from realcluster.layout import CONTROL_PLANE_IP, FAKE_NODE_ANNOTATION, Layout, real_node_ip

__all__ = [
    "Component", "containerd", "etcd", "forward", "karpenter", "kube_apiserver", "kube_controller_manager",
    "kube_scheduler", "kubelet", "kwok",
]  # fmt: skip

_ETCD = "http://127.0.0.1:2379"
_ETCD_PEER = "http://127.0.0.1:2380"
KWOK_HEALTH = f"http://{CONTROL_PLANE_IP}:10247/healthz"
KARPENTER_HEALTH = "http://127.0.0.1:18081/readyz"


@dataclass(frozen=True, slots=True)
class Component:
    """One long-running program, started again when it ends."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    descriptors: tuple[int, ...] = ()
    """Open files that it inherits."""


def _component(name: str, *command: object, **environment: str) -> Component:
    return Component(name, tuple(map(str, command)), environment)


def etcd(layout: Layout) -> Component:
    """The store. Nothing is synced to disk: a cluster of tests does not outlive the machine."""
    return _component(
        "etcd", layout.bin / "controlplane", "etcd", "--data-dir", layout.root / "etcd", "--log-level", "error",
        "--listen-client-urls", _ETCD, "--advertise-client-urls", _ETCD,
        "--listen-peer-urls", _ETCD_PEER, "--initial-advertise-peer-urls", _ETCD_PEER,
        "--initial-cluster", f"default={_ETCD_PEER}", "--unsafe-no-fsync",
    )  # fmt: skip


def kube_apiserver(layout: Layout) -> Component:
    """The API server, with TLS, RBAC and the node authoriser."""
    pki = layout.pki
    return _component(
        "kube-apiserver", layout.bin / "controlplane", "kube-apiserver", "--etcd-servers", _ETCD,
        "--secure-port", 443, "--bind-address", "0.0.0.0", "--advertise-address", CONTROL_PLANE_IP,
        "--tls-cert-file", pki / "api.crt", "--tls-private-key-file", pki / "api.key",
        "--client-ca-file", pki / "ca.crt", "--token-auth-file", layout.root / "tokens.csv",
        "--kubelet-client-certificate", pki / "client.crt", "--kubelet-client-key", pki / "client.key",
        "--kubelet-preferred-address-types", "InternalIP",
        "--service-account-key-file", pki / "sa.pub", "--service-account-signing-key-file", pki / "sa.key",
        "--service-account-issuer", "https://kubernetes.default.svc",
        "--authorization-mode", "Node,RBAC", "--enable-admission-plugins", "NodeRestriction",
        "--service-cluster-ip-range", "10.0.0.0/24", "--allow-privileged",
        "--audit-policy-file", layout.root / "audit-policy.json", "--audit-log-path", layout.audit_log,
        # A test that reads the log wants its own requests there.
        "--audit-log-mode", "blocking",
    )  # fmt: skip


def kube_scheduler(layout: Layout) -> Component:
    """The scheduler in its default configuration."""
    return _component(
        "kube-scheduler", layout.bin / "controlplane", "kube-scheduler",
        "--kubeconfig", layout.kubeconfig("kube-scheduler"), "--leader-elect=false", "--secure-port", 0,
    )  # fmt: skip


def kube_controller_manager(layout: Layout) -> Component:
    """All controllers. A node is lost after 20 s instead of 50 s."""
    return _component(
        "kube-controller-manager", layout.bin / "controlplane", "kube-controller-manager",
        "--kubeconfig", layout.kubeconfig("kube-controller-manager"), "--leader-elect=false", "--secure-port", 0,
        "--service-account-private-key-file", layout.pki / "sa.key", "--root-ca-file", layout.pki / "ca.crt",
        "--use-service-account-credentials", "--node-monitor-grace-period=20s", "--node-monitor-period=2s",
    )  # fmt: skip


def containerd(layout: Layout, number: int) -> Component:
    """The container runtime of a real node."""
    node = layout.node(number)
    return _component(f"containerd-{node.name}", layout.bin / "containerd", "-c", node / "containerd.toml")


def kubelet(layout: Layout, number: int) -> Component:
    """The kubelet of a real node."""
    node = layout.node(number)
    return _component(
        f"kubelet-{node.name}", layout.bin / "kubelet", "--config", node / "kubelet.json",
        "--kubeconfig", layout.kubeconfig(node.name), "--root-dir", node / "kubelet", "--cert-dir", node / "pki",
        "--hostname-override", node.name, "--node-ip", real_node_ip(number), "--v", 2,
    )  # fmt: skip


def kwok(layout: Layout) -> Component:
    """Simulated kubelets. Without two capabilities: see `fake_nodes`."""
    return _component(
        "kwok", "setpriv", "--bounding-set", "-dac_override,-dac_read_search", layout.bin / "kwok",
        "--kubeconfig", layout.kubeconfig("kwok"), "--config", layout.root / "kwok.yaml",
        "--manage-nodes-with-annotation-selector", f"{FAKE_NODE_ANNOTATION}=fake",
        "--node-lease-duration-seconds", 20, "--server-address", f"{CONTROL_PLANE_IP}:10247",
        "--node-ip", CONTROL_PLANE_IP, "--node-port", 10247, "--cidr", "10.97.0.0/16",
        "--tls-cert-file", layout.pki / "api.crt", "--tls-private-key-file", layout.pki / "api.key",
    )  # fmt: skip


def karpenter(layout: Layout) -> Component:
    """Karpenter with its kwok provider: machines that are simulated nodes."""
    return _component(
        "karpenter", layout.bin / "karpenter",
        KUBECONFIG=str(layout.kubeconfig("karpenter")), DISABLE_LEADER_ELECTION="true", CLUSTER_NAME="real",
        METRICS_PORT="18080", HEALTH_PROBE_PORT="18081", SYSTEM_NAMESPACE="kube-system",
        FEATURE_GATES="StaticCapacity=true,CapacityBuffer=true",
    )  # fmt: skip


def forward(layout: Layout, descriptor: int) -> Component:
    """Carries a port of the machine's loopback device to the API server."""
    command = (str(layout.bin / "controlplane"), "forward", str(descriptor), "127.0.0.1:443")
    return Component("forward", command, descriptors=(descriptor,))
