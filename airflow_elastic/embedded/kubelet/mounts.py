"""A pod's private directory on this machine, and where its mounts lead."""

from __future__ import annotations

import base64
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_elastic.embedded.types import Object

if TYPE_CHECKING:
    from airflow_elastic.embedded.plane import ControlPlane

__all__ = ["PodDirectory"]

XCOM_PATH = "/airflow/xcom"
TERMINATION_LOG = "/dev/termination-log"


class PodDirectory:
    """Holds a pod's volumes and termination messages.

    Processes run on this machine without mounts, so paths below a mount point that occur in commands, arguments and
    environment values are rewritten to the pod's own directory.
    """

    def __init__(self, plane: ControlPlane, root: Path, pod: Object) -> None:
        self._plane = plane
        self._pod = pod
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.xcom = self.volume("xcom")
        self._rewriters: dict[str, Callable[[str], str]] = {}

    def volume(self, name: str) -> Path:
        """Return the directory of a volume."""
        path = self.root / "volumes" / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def home(self, container: Object) -> Path:
        """Return the directory in which a container runs."""
        wanted: str | None = container.get("workingDir")
        if wanted and Path(wanted).is_dir():
            return Path(wanted)
        path: Path = self.root / "containers" / container["name"]
        path.mkdir(parents=True, exist_ok=True)
        return path

    def termination_file(self, container: Object) -> Path:
        """Return the file that stands for the container's termination log."""
        file: Path = self.root / f"termination-{container['name']}"
        return file

    def rewrite(self, container: Object, text: str) -> str:
        """Return a text with the container's mount points replaced by directories of this pod."""
        rewriter = self._rewriters.get(container["name"])
        if rewriter is None:
            rewriter = self._rewriters[container["name"]] = self._make_rewriter(container)
        return rewriter(text)

    def remove(self) -> None:
        """Delete everything."""
        shutil.rmtree(self.root, ignore_errors=True)

    def _make_rewriter(self, container: Object) -> Callable[[str], str]:
        places = {XCOM_PATH: str(self.xcom)}
        volumes = {volume["name"]: volume for volume in self._pod["spec"].get("volumes") or ()}
        for mount in container.get("volumeMounts") or ():
            volume = volumes.get(mount["name"]) or {}
            places[mount["mountPath"].rstrip("/")] = str(self._source(volume) / (mount.get("subPath") or ""))
        places[container.get("terminationMessagePath") or TERMINATION_LOG] = str(self.termination_file(container))
        listed = sorted(places, key=len, reverse=True)
        pattern = re.compile("(?<![A-Za-z0-9_./-])(" + "|".join(map(re.escape, listed)) + ")(?![A-Za-z0-9_.-])")
        return lambda text: pattern.sub(lambda match: places[match.group(1)], text)

    def _source(self, volume: Object) -> Path:
        if volume.get("hostPath"):
            return Path(volume["hostPath"]["path"])
        path = self.volume(volume.get("name", "unnamed"))
        namespace = self._pod["metadata"]["namespace"]
        for kind, key, store in (("configMap", "name", "configmaps"), ("secret", "secretName", "secrets")):
            name = (volume.get(kind) or {}).get(key)
            entry = self._plane.store(store).get((namespace, name)) if name else None
            for file, value in ((entry.obj.get("data") or {}) if entry else {}).items():
                content = base64.b64decode(value) if kind == "secret" else str(value).encode()
                (path / file).write_bytes(content)
        return path
