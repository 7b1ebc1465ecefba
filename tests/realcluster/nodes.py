"""The files of a node with a real kubelet: control groups, network, containerd, kubelet."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from realcluster.images import PAUSE_IMAGE
from realcluster.layout import Layout, real_node_ip

__all__ = ["prepare_node"]

_CONTAINERD = """\
version = 2
root = "{node}/containerd/root"
state = "{node}/containerd/state"
[grpc]
  address = "{node}/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{node}/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  # Without CAP_SYS_RESOURCE nobody may lower a score.
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_hugetlb_controller = true
  tolerate_missing_hugetlb_controller = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{programs}/cni"
    conf_dir = "{node}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{snapshotter}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "{programs}/bin/runc"
      Root = "{node}/containerd/runc"
"""


def prepare_node(layout: Layout, number: int) -> None:
    """Write everything that the node's programs read."""
    node = layout.node(number)
    for name in ("cni", "kubelet", "containerd"):
        (node / name).mkdir(parents=True)
    _make_cgroups(layout, node.name)
    (node / "cni/10-bridge.conflist").write_text(json.dumps(_network(node, number)))
    (node / "containerd.toml").write_text(
        _CONTAINERD.format(node=node, pause=PAUSE_IMAGE, programs=layout.programs, snapshotter=_snapshotter(node))
    )
    (node / "kubelet.json").write_text(json.dumps(_kubelet(layout, node, number), indent=2))


def _snapshotter(folder: Path) -> str:
    """Return overlayfs, except on top of another overlay (a container's own root), where the kernel refuses it."""
    shown = subprocess.run(["stat", "-f", "-c", "%T", folder], text=True, capture_output=True, check=True, timeout=10)
    return "native" if shown.stdout.strip() == "overlayfs" else "overlayfs"


def _make_cgroups(layout: Layout, name: str) -> None:
    for group in layout.cgroups():
        for path in (group, group / name):
            path.mkdir(exist_ok=True)
            if group.parent.name == "cpuset":
                for file in ("cpuset.cpus", "cpuset.mems"):
                    (path / file).write_text((path.parent / file).read_text())


def _network(node: Path, number: int) -> dict[str, object]:
    addresses = {
        "type": "host-local",
        "dataDir": f"{node}/ipam",
        "ranges": [[{"subnet": f"10.98.{number}.0/24"}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    plugin = {"type": "bridge", "bridge": f"kb{number}", "isGateway": True, "ipam": addresses}
    return {"cniVersion": "1.0.0", "name": node.name, "plugins": [plugin]}


def _kubelet(layout: Layout, node: Path, number: int) -> dict[str, object]:
    address = real_node_ip(number)
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{node}/containerd.sock",
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{layout.cgroup}/{node.name}",
        "enforceNodeAllocatable": ["pods"],
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "address": address,
        "healthzBindAddress": address,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": False},
            "x509": {"clientCAFile": f"{layout.pki}/ca.crt"},
        },
        "authorization": {"mode": "AlwaysAllow"},
        "podLogsDir": f"{node}/logs",
        "volumePluginDir": f"{node}/plugins",
        "resolvConf": f"{layout.root}/resolv.conf",
        "makeIPTablesUtilChains": False,
        # Quicker than the defaults, so that tests of node loss take seconds.
        "nodeStatusUpdateFrequency": "4s",
        "nodeStatusReportFrequency": "10s",
        "nodeLeaseDurationSeconds": 12,
        # The machine's disk is not ours to clean, nor its memory.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "1%",
            "imagefs.available": "1%",
            "nodefs.inodesFree": "1%",
        },
    }
