"""Process 1 of a cluster: prepares the namespaces, starts the components in order, keeps them running.

Run as ``unshare --net --mount --pid … python -m realcluster.inside ROOT PROGRAMS OPTIONS LISTENER``.
"""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path

from realcluster import components
from realcluster.components import Component
from realcluster.identities import ADMIN
from realcluster.images import make_images
from realcluster.kernel import bind_mount, mount_tmpfs, shadow
from realcluster.layout import API_URL, CONTROL_PLANE_IP, SERVICE_IP, ClusterOptions, Layout, real_node_ip
from realcluster.nodes import prepare_node

__all__ = ["Inside"]

# What a kubelet insists on writing. It gets files of its own instead of the machine's kernel.
_SYSCTLS = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1_000_000,
    "kernel/keys/root_maxbytes": 25_000_000,
}
_POLL_SECONDS = 0.1
_RESTART_SECONDS = 1.0


class Inside:
    """The life of one cluster, seen from its process 1."""

    def __init__(self, layout: Layout, options: ClusterOptions, listener: int) -> None:
        self._layout = layout
        self._options = options
        self._listener = listener
        self._began = time.monotonic()
        self._seconds: dict[str, float] = {}
        self._running: dict[int, Component] = {}
        self._ended: list[tuple[float, Component]] = []
        self._children: list[subprocess.Popen[bytes]] = []
        certificates = ssl.create_default_context(cafile=str(layout.pki / "ca.crt"))
        self._opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=certificates))
        kubeconfig = json.loads(layout.kubeconfig(ADMIN).read_text())
        self._token = kubeconfig["users"][0]["user"]["token"]

    def run(self) -> None:
        """Bring everything up, say so, and stay."""
        self._isolate()
        self._start_all()
        unfinished = self._layout.ready.with_suffix(".partial")
        unfinished.write_text(json.dumps(self._seconds))
        unfinished.rename(self._layout.ready)
        while True:
            self._reap()
            self._restart()
            time.sleep(_POLL_SECONDS)

    def _isolate(self) -> None:
        behind = self._layout.root / "behind"
        behind.mkdir()
        for folder in ("/run", "/var/lib", "/var/log"):
            shadow(Path(folder), behind / folder.strip("/").replace("/", "-"))
        for folder in ("/run/netns", "/var/lib/cni"):
            Path(folder).mkdir(exist_ok=True)
            mount_tmpfs(Path(folder))
        for name, value in _SYSCTLS.items():
            file = behind / name.replace("/", ".")
            file.write_text(f"{value}\n")
            bind_mount(file, Path("/proc/sys") / name)
        addresses = [SERVICE_IP, CONTROL_PLANE_IP, *map(real_node_ip, self._real_nodes)]
        for words in ("link set lo up", *(f"addr add {address}/32 dev lo" for address in addresses)):
            subprocess.run(["ip", *words.split()], check=True, timeout=10)
        # CNI plugins look for iptables and the like there.
        os.environ["PATH"] = f"{self._layout.bin}:/usr/sbin:/usr/bin:/sbin:/bin"

    @property
    def _real_nodes(self) -> range:
        return range(1, self._options.real_nodes + 1)

    def _start_all(self) -> None:
        layout = self._layout
        self._start(components.etcd(layout))
        self._start(components.kube_apiserver(layout))
        for number in self._real_nodes:
            prepare_node(layout, number)
            self._start(components.containerd(layout, number))
        images = make_images(layout.bin / "busybox", layout.root / "images") if self._options.real_nodes else []
        for number in self._real_nodes:
            self._import(number, images)
        self._until("API server", lambda: self._get(f"{API_URL}/readyz"))
        self._start(components.kube_controller_manager(layout))
        self._start(components.kube_scheduler(layout))
        self._start(components.forward(layout, self._listener))
        for number in self._real_nodes:
            self._start(components.kubelet(layout, number))
        if self._options.fake_nodes:
            self._start(components.kwok(layout))
        if self._options.karpenter:
            self._start_karpenter()
        self._until(
            "service account", lambda: self._get(f"{API_URL}/api/v1/namespaces/default/serviceaccounts/default")
        )
        if self._options.fake_nodes:
            self._until("kwok", lambda: self._get(components.KWOK_HEALTH))
        for number in self._real_nodes:
            self._until(f"node r{number}", partial(self._node_is_ready, f"r{number}"))

    def _start_karpenter(self) -> None:
        for path in sorted((self._layout.programs / "crds").glob("*.yaml")):
            self._get(f"{API_URL}/apis/apiextensions.k8s.io/v1/customresourcedefinitions", path.read_bytes())
        for resource in ("karpenter.sh/v1/nodepools", "karpenter.kwok.sh/v1alpha1/kwoknodeclasses"):
            self._until(resource, partial(self._get, f"{API_URL}/apis/{resource}"))
        self._start(components.karpenter(self._layout))
        self._until("Karpenter", lambda: self._get(components.KARPENTER_HEALTH))

    def _import(self, number: int, images: list[Path]) -> None:
        socket = self._layout.node(number) / "containerd.sock"
        command = [str(self._layout.bin / "ctr"), "-a", str(socket), "-n", "k8s.io"]
        self._until(
            f"containerd r{number}",
            lambda: subprocess.run([*command, "version"], capture_output=True, timeout=30).returncode == 0,
        )
        for image in images:
            subprocess.run([*command, "images", "import", str(image)], check=True, capture_output=True, timeout=60)

    def _node_is_ready(self, name: str) -> bool:
        conditions = json.loads(self._get(f"{API_URL}/api/v1/nodes/{name}"))["status"].get("conditions") or []
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def _get(self, url: str, data: bytes | None = None) -> bytes:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/yaml"}
        with self._opener.open(urllib.request.Request(url, data, headers), timeout=5) as answer:
            content: bytes = answer.read()
        return content

    def _until(self, what: str, holds: Callable[[], object]) -> None:
        while True:
            self._fail_if_ended()
            try:
                if holds():
                    break
            except (OSError, subprocess.SubprocessError):
                pass
            time.sleep(_POLL_SECONDS)
        self._seconds[what] = round(time.monotonic() - self._began, 1)
        print(f"{self._seconds[what]:6.1f} {what}", flush=True)

    def _start(self, component: Component) -> None:
        with (self._layout.logs / f"{component.name}.log").open("ab") as log:
            child = subprocess.Popen(
                component.command,
                env={"PATH": os.environ["PATH"], "HOME": str(self._layout.root), **component.environment},
                cwd=self._layout.root,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=component.descriptors,
            )
        # Its end is seen in `_reap`, with that of every orphan.
        self._children.append(child)
        self._running[child.pid] = component
        (self._layout.pids / component.name).write_text(str(child.pid))

    def _fail_if_ended(self) -> None:
        for child in self._children:
            if child.poll() is not None:
                name = self._running[child.pid].name
                tail = (self._layout.logs / f"{name}.log").read_text(errors="replace")[-1500:]
                sys.exit(f"{name} ended with {child.returncode} while the cluster started:\n{tail}")

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            component = self._running.pop(pid, None)
            if component is not None:
                seconds = time.monotonic() - self._began
                print(f"{seconds:6.1f} {component.name} ended with status {status}", flush=True)
                (self._layout.pids / component.name).unlink(missing_ok=True)
                self._ended.append((time.monotonic(), component))

    def _restart(self) -> None:
        for at, component in list(self._ended):
            held = (self._layout.holds / component.name).exists()
            if not held and time.monotonic() - at > _RESTART_SECONDS:
                self._ended.remove((at, component))
                self._start(component)


if __name__ == "__main__":
    root, programs, options, listener = sys.argv[1:]
    Inside(Layout(Path(root), Path(programs)), ClusterOptions.from_json(options), int(listener)).run()
