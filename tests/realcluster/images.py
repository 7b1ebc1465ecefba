"""Container images without a registry: tar files that containerd imports."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
import tempfile
from pathlib import Path

__all__ = ["BUSYBOX_IMAGE", "HOST_IMAGE", "PAUSE_IMAGE", "make_images"]

PAUSE_IMAGE = "localhost/pause:1"
BUSYBOX_IMAGE = "localhost/busybox:1"
HOST_IMAGE = "localhost/host:1"
"""An empty system whose /usr is to be mounted from the machine (hostPath, read-only): it has Python then."""

# What KubernetesPodOperator's XCom sidecar and the product's placeholders run by default.
_BUSYBOX_NAMES = (BUSYBOX_IMAGE, "docker.io/library/alpine:3.24.2", "docker.io/library/busybox:1.37")
_PAUSE_NAMES = (PAUSE_IMAGE, "registry.k8s.io/pause:3.10")
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SOURCE = Path(__file__).with_name("pause.c")


def make_images(busybox: Path, folder: Path) -> list[Path]:
    """Write the images' tar files into a folder and return them."""
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        work = Path(temporary)
        return [
            _archive(folder / "pause.tar", _pause(work / "pause"), _PAUSE_NAMES, ["/pause"]),
            _archive(folder / "busybox.tar", _busybox(work / "busybox", busybox), _BUSYBOX_NAMES, ["/bin/sh"]),
            _archive(folder / "host.tar", _host(work / "host"), (HOST_IMAGE,), ["/bin/sh"]),
        ]


def _pause(root: Path) -> Path:
    root.mkdir()
    subprocess.run(["gcc", "-static", "-Os", "-s", "-o", root / "pause", _SOURCE], check=True, timeout=60)
    return root


def _busybox(root: Path, program: Path) -> Path:
    for name in ("bin", "etc", "tmp", "root", "usr/bin"):
        (root / name).mkdir(parents=True)
    (root / "bin/busybox").write_bytes(program.read_bytes())
    (root / "bin/busybox").chmod(0o755)
    listed = subprocess.run([program, "--list"], check=True, text=True, capture_output=True, timeout=60).stdout
    for applet in listed.split():
        if applet != "busybox":
            (root / "bin" / applet).symlink_to("busybox")
    _users(root)
    return root


def _host(root: Path) -> Path:
    for name in ("usr", "etc", "tmp", "root", "proc", "sys", "dev", "var/tmp", "run", "opt"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    _users(root)
    return root


def _users(root: Path) -> None:
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\n")


def _archive(target: Path, root: Path, names: tuple[str, ...], command: list[str]) -> Path:
    """Write an image of one layer in the format of ``docker save``."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        tar.add(root, arcname=".", filter=_owned_by_root)
    content = layer.getvalue()
    configuration = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "created": "2026-01-01T00:00:00Z",
            "config": {"Cmd": command, "Env": [_PATH]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(content).hexdigest()}"]},
        }
    ).encode()
    name = f"{hashlib.sha256(configuration).hexdigest()}.json"
    manifest = json.dumps([{"Config": name, "RepoTags": list(names), "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(target, "w") as tar:
        for member, data in ((name, configuration), ("manifest.json", manifest), ("layer.tar", content)):
            entry = tarfile.TarInfo(member)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return target


def _owned_by_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = "root"
    if entry.name == "./tmp":
        entry.mode = 0o1777
    return entry
