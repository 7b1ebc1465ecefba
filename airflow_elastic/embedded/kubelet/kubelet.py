"""All nodes' kubelets: follows the pods bound to live nodes and runs them."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_elastic.embedded.kubelet.exec import run_in_container
from airflow_elastic.embedded.kubelet.guard import ProcessGuard
from airflow_elastic.embedded.kubelet.logs import ContainerLog
from airflow_elastic.embedded.kubelet.worker import PodWorker
from airflow_elastic.embedded.registry.pod_deletion import TERMINAL_PHASES
from airflow_elastic.embedded.store.entry import DELETED, Change

if TYPE_CHECKING:
    from airflow_elastic.embedded.http.exec import ExecChannels
    from airflow_elastic.embedded.plane import ControlPlane

__all__ = ["Kubelet"]


class Kubelet:
    """Runs the pods of every node."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.pods = plane.store("pods")
        self.guard = ProcessGuard()
        self._workers: dict[str, PodWorker] = {}
        self._addresses = 0
        self._root: Path | None = None
        self._stopped = False
        self.pods.listen(self._on_pod_change)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Return the cluster's event loop."""
        return self.plane.loop

    @property
    def root(self) -> Path:
        """Return the directory that holds the pods' directories, made when first needed."""
        if self._root is None:
            self._root = Path(tempfile.mkdtemp(prefix="airflow-elastic-pods-"))
        return self._root

    def log_of(self, uid: str, container: str) -> ContainerLog | None:
        """Return a container's log, None while it waits."""
        worker = self._workers.get(uid)
        if worker is None or worker.lost:
            return None
        return next((c.log for c in worker.all_containers if c.name == container), None)

    def is_running(self, uid: str, container: str) -> bool:
        """Tell whether a container runs."""
        worker = self._workers.get(uid)
        return worker is not None and any(c.name == container and c.running for c in worker.all_containers)

    async def exec(self, uid: str, container: str, command: list[str], channels: ExecChannels) -> int:
        """Run a command in a running container; returns its exit code."""
        worker = self._workers[uid]
        chosen = next(c for c in worker.all_containers if c.name == container)
        return await run_in_container(worker, chosen, command, channels)

    def lose_node(self, node: str) -> None:
        """Stop everything on a node silently: its machine is gone."""
        for worker in list(self._workers.values()):
            if worker.node == node:
                worker.drop()

    def stop(self) -> None:
        """End every process and remove what the pods left on disk."""
        self._stopped = True
        for worker in self._workers.values():
            worker.drop()
        self._workers.clear()
        self.guard.stop()
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)

    def _on_pod_change(self, change: Change) -> None:
        entry = change.entry
        pod = entry.obj
        worker = self._workers.get(entry.uid)
        if change.type == DELETED:
            if worker is not None:
                del self._workers[entry.uid]
                worker.drop()
                if worker.directory is not None:
                    self.loop.call_soon(worker.directory.remove)
            return
        if worker is None:
            node = pod["spec"].get("nodeName")
            if not node or pod["status"]["phase"] in TERMINAL_PHASES or self._stopped:
                return
            if not self.plane.pools.fleet.alive(node):
                return
            worker = self._take(change, node)
        deletion = pod["metadata"].get("deletionTimestamp")
        if deletion and (change.previous is None or pod["metadata"] is not change.previous.obj["metadata"]):
            before = change.previous.obj["metadata"] if change.previous else {}
            grace = pod["metadata"]["deletionGracePeriodSeconds"]
            if before.get("deletionGracePeriodSeconds") != grace:
                # Through the loop: the pod's own listeners must hear of the mark before they hear of the end.
                self.loop.call_soon(worker.terminate, float(grace))

    def _take(self, change: Change, node: str) -> PodWorker:
        self._addresses += 1
        number = self._addresses
        ip = f"10.{64 + (number >> 16 & 63)}.{number >> 8 & 255}.{number & 255}"
        machine = self.plane.pools.fleet.get(node)
        index = machine.index if machine is not None else 0
        host_ip = f"10.{index >> 16 & 255}.{index >> 8 & 255}.{index & 255}"
        worker = self._workers[change.entry.uid] = PodWorker(self, change.entry, ip, host_ip)
        refusal = self.plane.scheduler.admission_refusal(change.entry.uid)
        if refusal is not None:
            self.loop.call_soon(worker.reject, *refusal)
        elif self.plane.config.pod_start_seconds > 0:
            self.loop.call_later(self.plane.config.pod_start_seconds, worker.begin)
        else:
            self.loop.call_soon(worker.begin)
        return worker
