"""One pod on its node, from admission to the last status."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from airflow_elastic.embedded import timestamps
from airflow_elastic.embedded.kubelet import starting
from airflow_elastic.embedded.kubelet.container import Container
from airflow_elastic.embedded.kubelet.mounts import PodDirectory
from airflow_elastic.embedded.kubelet.status import pod_status
from airflow_elastic.embedded.store.entry import Entry

if TYPE_CHECKING:
    from airflow_elastic.embedded.kubelet.kubelet import Kubelet

__all__ = ["PodWorker"]

_BACKOFF_SECONDS = (10.0, 300.0)


class PodWorker:
    """Runs a pod's containers and writes its status; costs no process and no thread of its own."""

    __slots__ = (
        "_begun", "_deadline", "_end_reason", "_grace_timer", "_host_ip", "_initialized", "_ip", "_kubelet",
        "_start_time", "_timers", "containers", "directory", "done", "init_containers", "key", "lost", "node", "pod",
        "terminating", "uid",
    )  # fmt: skip

    def __init__(self, kubelet: Kubelet, entry: Entry, ip: str, host_ip: str) -> None:
        self._kubelet = kubelet
        self.pod = entry.obj
        self.key = entry.key
        self.uid = entry.uid
        spec = entry.obj["spec"]
        self.node: str = spec["nodeName"]
        self.init_containers = [Container(c, "PodInitializing") for c in spec.get("initContainers") or ()]
        waiting = "PodInitializing" if self.init_containers else "ContainerCreating"
        self.containers = [Container(c, waiting) for c in spec["containers"]]
        self.directory: PodDirectory | None = None
        self.terminating = False
        self.lost = False
        self.done = False
        self._ip = ip
        self._host_ip = host_ip
        self._start_time = timestamps.now()
        self._initialized = not self.init_containers
        self._begun = False
        self._end_reason = ("", "")
        self._grace_timer: asyncio.TimerHandle | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._timers: set[asyncio.TimerHandle] = set()

    @property
    def all_containers(self) -> list[Container]:
        """Return init containers and containers."""
        return [*self.init_containers, *self.containers]

    @property
    def kubelet(self) -> Kubelet:
        """Return the kubelet that runs this pod."""
        return self._kubelet

    def begin(self) -> None:
        """Start the pod's containers (init containers first)."""
        if self.lost or self.done:
            return
        self._begun = True
        deadline = self.pod["spec"].get("activeDeadlineSeconds")
        if deadline is not None:
            self._deadline = self._kubelet.loop.call_later(float(deadline), self._deadline_passed)
        if starting.broken_image(self):
            self._write("Pending")
            return
        self._go_on()

    def reject(self, reason: str, message: str) -> None:
        """Refuse the pod before any container starts: it fails without container statuses."""
        self.done = True
        entry = self._kubelet.pods.get(self.key)
        if entry is None:
            return
        status = {
            **entry.obj["status"], "phase": "Failed", "reason": reason, "message": f"Pod was rejected: {message}",
            "startTime": self._start_time,
        }  # fmt: skip
        self._kubelet.pods.put(self.key, {**entry.obj, "metadata": dict(entry.obj["metadata"]), "status": status})

    def terminate(self, grace_seconds: float) -> None:
        """End the pod's containers: SIGTERM, and SIGKILL when the grace period is over."""
        if self.lost or self.done:
            if self.done and not self.lost:
                self._finish_deletion()
            return
        if self._grace_timer is not None:
            self._grace_timer.cancel()
        first = not self.terminating
        self.terminating = True
        running = [container for container in self.all_containers if container.runner is not None]
        if not running:
            self._complete()
            return
        self._grace_timer = self._kubelet.loop.call_later(grace_seconds, self._kill)
        if first:
            entry = self._kubelet.pods.get(self.key)
            if entry is not None:
                for container in running:
                    starting.emit(self, "Killing", f"Stopping container {container.name}")
            for container in running:
                if container.runner is not None:
                    container.runner.terminate()

    def drop(self) -> None:
        """Stop everything silently: the machine died, or the object is gone."""
        self.lost = True
        self._cancel_timers()
        for container in self.all_containers:
            runner, container.runner = container.runner, None
            if runner is not None:
                runner.drop()
            if container.log is not None and not container.log.closed:
                container.log.close()

    def exited(self, container: Container, code: int, *, reason: str = "", message: str = "") -> None:
        """Hear that a container has ended."""
        if self.lost or container.runner is None:
            return
        container.end(code, reason, message or starting.termination_message(self, container, code))
        if self.terminating:
            if not any(c.running for c in self.all_containers):
                self._complete()
            else:
                self._write(self._phase())
            return
        if container in self.init_containers:
            self._init_ended(container, code)
        else:
            self._main_ended(container, code)

    # Containers in order

    def _go_on(self) -> None:
        """Start the next init container, or all containers once these are through."""
        for container in self.init_containers:
            if container.exit_code == 0 or (container.is_sidecar and container.running):
                continue
            if container.running or container.ended:
                return
            starting.start(self, container, init=True)
            if not container.is_sidecar:
                self._write("Pending")
                return
        self._initialized = True
        for container in self.containers:
            if not container.ended and not container.running:
                starting.start(self, container, init=False)
        if not self._settle():
            self._write(self._phase())

    def _init_ended(self, container: Container, code: int) -> None:
        if code == 0:
            self._go_on()
        elif self.pod["spec"]["restartPolicy"] == "Never" and not container.is_sidecar:
            self._end_reason = ("", "")
            self._complete(failed=True)
        else:
            self._restart_later(container)

    def _main_ended(self, container: Container, code: int) -> None:
        policy = self.pod["spec"]["restartPolicy"]
        if policy == "Always" or (policy == "OnFailure" and code != 0):
            self._restart_later(container)
        elif not self._settle():
            self._write(self._phase())

    def _settle(self) -> bool:
        """Complete the pod if all its containers have ended for good."""
        if any(not container.ended for container in self.containers):
            return False
        if self.pod["spec"]["restartPolicy"] == "Always":
            return False
        sidecars = [container for container in self.init_containers if container.running]
        if sidecars:
            self.terminating = True
            grace = float(self.pod["spec"]["terminationGracePeriodSeconds"])
            self._grace_timer = self._kubelet.loop.call_later(grace, self._kill)
            for container in sidecars:
                if container.runner is not None:
                    container.runner.terminate()
            return True
        self._complete()
        return True

    def _restart_later(self, container: Container) -> None:
        low, high = _BACKOFF_SECONDS
        seconds = 0.0 if container.restarts == 0 else min(high, low * 2 ** (container.restarts - 1))
        message = f"back-off {seconds:g}s restarting failed container={container.name}"
        container.wait_again("CrashLoopBackOff", message)
        container.restarts += 1
        if seconds:
            about = f"{self.key[1]}_{self.key[0]}({self.uid})"
            starting.emit(
                self, "BackOff", f"Back-off restarting failed container {container.name} in pod {about}", warning=True
            )
        self._write(self._phase())
        self._later(seconds, partial(self._restart, container))

    def _restart(self, container: Container) -> None:
        if self.terminating or self.lost or self.done:
            return
        starting.start(self, container, init=container in self.init_containers)
        self._write(self._phase())

    # The end

    def _deadline_passed(self) -> None:
        self._end_reason = ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
        grace = self.pod["spec"]["terminationGracePeriodSeconds"]
        self.terminate(float(grace))

    def _kill(self) -> None:
        for container in self.all_containers:
            if container.runner is not None:
                container.runner.kill()

    def _complete(self, *, failed: bool = False) -> None:
        if self.done:
            return
        self.done = True
        self._cancel_timers()
        reason, message = self._end_reason
        codes = [container.exit_code for container in self.containers]
        success = not failed and not reason and all(code == 0 for code in codes)
        self._write("Succeeded" if success else "Failed", reason, message)
        self._finish_deletion()

    def _finish_deletion(self) -> None:
        entry = self._kubelet.pods.get(self.key)
        if entry is not None and entry.uid == self.uid and entry.obj["metadata"].get("deletionTimestamp"):
            self._kubelet.plane.pod_deletion.finish(entry)

    def _phase(self) -> str:
        return "Running" if self._initialized and any(c.started for c in self.containers) else "Pending"

    def _write(self, phase: str, reason: str = "", message: str = "") -> None:
        entry = self._kubelet.pods.get(self.key)
        if entry is None or entry.uid != self.uid or self.lost:
            return
        obj = entry.obj
        status = pod_status(
            obj["status"], phase, self.init_containers, self.containers,
            ip=self._ip, host_ip=self._host_ip, start_time=self._start_time, initialized=self._initialized,
            reason=reason, message=message,
        )  # fmt: skip
        self._kubelet.pods.put(self.key, {**obj, "metadata": dict(obj["metadata"]), "status": status})

    def make_directory(self) -> PodDirectory:
        """Return the pod's directory, made when first needed."""
        if self.directory is None:
            self.directory = PodDirectory(self._kubelet.plane, self._kubelet.root / self.uid, self.pod)
        return self.directory

    def _later(self, seconds: float, action: partial[None]) -> None:
        self._timers.add(self._kubelet.loop.call_later(seconds, action))

    def later(self, seconds: float, action: partial[None]) -> None:
        """Do something later unless the pod ends before."""
        self._later(seconds, action)

    def start_again(self, seconds: float, container: Container) -> None:
        """Try to start a container again after a while."""
        self._later(seconds, partial(self._restart, container))

    def write_pending(self) -> None:
        """Report the pod as still pending."""
        if not self.done and not self.terminating:
            self._write("Pending")

    def _cancel_timers(self) -> None:
        for timer in (self._grace_timer, self._deadline, *self._timers):
            if timer is not None:
                timer.cancel()
        self._timers.clear()
