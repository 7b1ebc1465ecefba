"""Builds the programs once into the user's cache folder: 20 minutes on two cores the first time, nothing afterwards."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from realcluster.versions import GO_FOLDER, KARPENTER, KWOK, fingerprint, kubernetes_version

__all__ = ["BuildError", "build", "built_folder", "is_built", "missing_for_build", "missing_for_run"]

_BUILD_SECONDS = 60 * 60
_GO_MODULES = {"kwok": KWOK, "karpenter": KARPENTER}
# Only unpacked, never installed: no service starts, nothing outside the cache folder changes.
_DEBIAN_PACKAGES = ("containerd", "runc", "containernetworking-plugins", "busybox-static")
_FROM_DEBIAN = {
    "containerd": "usr/bin/containerd",
    "containerd-shim-runc-v2": "usr/bin/containerd-shim-runc-v2",
    "ctr": "usr/bin/ctr",
    "runc": "usr/sbin/runc",
    "busybox": "bin/busybox",
}
_CNI_PLUGINS = ("bridge", "host-local", "loopback")
_KUBELET = '#!/bin/sh\nexec "$(dirname "$0")/controlplane" kubelet "$@"\n'


class BuildError(RuntimeError):
    """A program could not be built; the message has the end of the tool's output."""


def built_folder() -> Path:
    """Return the folder of this version's programs; it need not exist."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "airflow-elastic" / "realcluster" / fingerprint()


def is_built() -> bool:
    """Tell whether a cluster can start without building anything."""
    return (built_folder() / "complete").exists()


def missing_for_run() -> str:
    """Return what this machine lacks to run a cluster, as a sentence; empty when nothing is."""
    if sys.platform != "linux":
        return f"the real cluster needs Linux, this is {sys.platform}"
    if os.geteuid() != 0:
        return "the real cluster needs root (namespaces, mounts, cgroups)"
    if not Path("/sys/fs/cgroup/memory").is_dir():
        return "the real cluster needs cgroup v1 below /sys/fs/cgroup; version 2 has not been tried"
    tools = [tool for tool in ("unshare", "setpriv", "ip") if shutil.which(tool) is None]
    return f"the real cluster needs {', '.join(tools)} (packages util-linux, iproute2)" if tools else ""


def missing_for_build() -> str:
    """Return what this machine lacks to build, as a sentence; empty when nothing is."""
    tools = [tool for tool in ("go", "gcc", "apt-get", "dpkg") if shutil.which(tool) is None]
    return f"building the real cluster needs {', '.join(tools)} on the PATH" if tools else ""


def build() -> Path:
    """Build what is not built yet and return the folder with ``bin``, ``cni`` and ``crds``.

    Each program is kept as soon as it is done, so an interrupted build goes on where it was.

    Raises:
        BuildError: a tool is missing or failed.
    """
    folder = built_folder()
    if is_built():
        return folder
    if missing := missing_for_build():
        raise BuildError(missing)
    for name in ("bin", "cni", "crds"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    with _lock(folder / "lock"):
        if is_built():
            return folder
        _debian(folder)
        _control_plane(folder / "bin")
        for name, module in _GO_MODULES.items():
            _installed(folder / "bin" / name, module)
        _karpenter_definitions(folder / "crds")
        (folder / "complete").touch()
    return folder


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _debian(folder: Path) -> None:
    wanted = [*(folder / "bin" / name for name in _FROM_DEBIAN), *(folder / "cni" / name for name in _CNI_PLUGINS)]
    if all(path.exists() for path in wanted):
        return
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        work = Path(temporary)
        # apt drops its rights to write there otherwise, and says so at length.
        download = ["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", *_DEBIAN_PACKAGES]
        try:
            _run("download packages", download, work)
        except BuildError:
            _run("read the package lists", ["apt-get", "-qq", "update"], work)
            _run("download packages", download, work)
        for package in work.glob("*.deb"):
            _run(f"unpack {package.name}", ["dpkg", "-x", package.name, "x"], work)
        for name, inside in _FROM_DEBIAN.items():
            _keep(work / "x" / inside, folder / "bin" / name)
        for name in _CNI_PLUGINS:
            _keep(work / "x/usr/lib/cni" / name, folder / "cni" / name)


def _control_plane(target: Path) -> None:
    binary = target / "controlplane"
    if not binary.exists():
        version = kubernetes_version()
        minor = version.split(".")[1]
        stamp = "k8s.io/component-base/version"
        values = {"gitVersion": version, "gitMajor": "1", "gitMinor": minor}
        flags = " ".join(["-s -w", *(f"-X {stamp}.{name}={value}" for name, value in values.items())])
        partial = binary.with_suffix(".partial")
        options = ["-mod=readonly", "-buildvcs=false", "-trimpath", "-ldflags", flags, "-o", str(partial)]
        what = f"build Kubernetes {version} (12 minutes without a build cache)"
        _run(what, ["go", "build", *options, "."], GO_FOLDER)
        partial.rename(binary)
    kubelet = target / "kubelet"
    kubelet.write_text(_KUBELET)
    kubelet.chmod(0o755)


def _installed(binary: Path, module: str) -> None:
    if binary.exists():
        return
    with tempfile.TemporaryDirectory(dir=binary.parent) as temporary:
        # Both modules name their program kwok: each gets a folder of its own.
        command = ["go", "install", "-trimpath", "-ldflags", "-s -w", module]
        _run(f"build {module} (3 minutes without a build cache)", command, Path(temporary), GOBIN=temporary)
        _keep(Path(temporary) / "kwok", binary)


def _karpenter_definitions(target: Path) -> None:
    module, _, version = KARPENTER.partition("/kwok@")
    answer = _run(
        "find Karpenter's resource definitions", ["go", "mod", "download", "-json", f"{module}@{version}"], target
    )
    source = Path(json.loads(answer)["Dir"])
    for path in (*source.glob("kwok/charts/crds/*.yaml"), *source.glob("kwok/apis/crds/*.yaml")):
        _keep(path, target / path.name)


def _keep(source: Path, target: Path) -> None:
    partial = target.with_name(f"{target.name}.partial")
    shutil.copyfile(source, partial)
    partial.chmod(source.stat().st_mode | 0o200)
    partial.rename(target)


def _run(what: str, command: list[str], folder: Path, **environment: str) -> str:
    print(f"real cluster: {what} …", file=sys.stderr, flush=True)
    began = time.monotonic()
    # CGO_ENABLED decides what the build cache holds: the same everywhere, or everything is built twice.
    values = {**os.environ, "CGO_ENABLED": "1", "DEBIAN_FRONTEND": "noninteractive", **environment}
    try:
        done = subprocess.run(
            ["nice", "-n", "15", *command],
            cwd=folder,
            env=values,
            text=True,
            capture_output=True,
            timeout=_BUILD_SECONDS,
        )
    except subprocess.TimeoutExpired:
        late = f"real cluster: to {what} took more than {_BUILD_SECONDS} s: {' '.join(command)}"
        raise BuildError(late) from None
    if done.returncode:
        raise BuildError(
            f"real cluster: to {what} failed ({' '.join(command)}):\n{(done.stdout + done.stderr)[-3000:]}"
        )
    print(f"real cluster: {what}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return done.stdout
