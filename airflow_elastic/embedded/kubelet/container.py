"""One container of a pod: its state as the API shows it."""

from __future__ import annotations

import secrets

from airflow_elastic.embedded import timestamps
from airflow_elastic.embedded.kubelet.logs import ContainerLog
from airflow_elastic.embedded.kubelet.runners import Runner
from airflow_elastic.embedded.types import Object

__all__ = ["SIDECAR_NAME", "Container"]

SIDECAR_NAME = "airflow-xcom-sidecar"


class Container:
    """State, log and runner of a container; a restart replaces the runner."""

    __slots__ = (
        "exit_code", "finished", "id", "last_state", "log", "message", "name", "reason", "restarts", "runner", "spec",
        "started", "waiting_message", "waiting_reason",
    )  # fmt: skip

    def __init__(self, spec: Object, waiting_reason: str = "ContainerCreating") -> None:
        self.spec = spec
        self.name: str = spec["name"]
        self.log: ContainerLog | None = None
        self.runner: Runner | None = None
        self.id = ""
        self.started = ""
        self.finished = ""
        self.exit_code: int | None = None
        self.reason = ""
        self.message = ""
        self.restarts = 0
        self.last_state: Object = {}
        self.waiting_reason = waiting_reason
        self.waiting_message = ""

    @property
    def running(self) -> bool:
        """Tell whether the container runs."""
        return self.runner is not None

    @property
    def ended(self) -> bool:
        """Tell whether the container has terminated."""
        return self.exit_code is not None

    @property
    def is_sidecar(self) -> bool:
        """Tell whether it is an init container that runs beside the others."""
        return self.spec.get("restartPolicy") == "Always"

    def begin(self) -> ContainerLog:
        """Note the start of a run; returns the log to write to."""
        self.id = f"embedded://{secrets.token_hex(16)}"
        self.started = timestamps.now()
        self.finished = ""
        self.exit_code = None
        self.reason = self.message = ""
        self.log = ContainerLog()
        return self.log

    def end(self, code: int, reason: str = "", message: str = "") -> None:
        """Note the end of a run."""
        self.runner = None
        self.exit_code = code
        self.finished = timestamps.now()
        self.started = self.started or self.finished
        self.reason = reason or ("Completed" if code == 0 else "Error")
        self.message = message
        if self.log is not None:
            self.log.close()

    def wait_for(self, reason: str, message: str) -> None:
        """Take a start back: something is missing that may still come."""
        self.id = self.started = ""
        self.log = None
        self.waiting_reason, self.waiting_message = reason, message

    def wait_again(self, reason: str, message: str) -> None:
        """Go back to waiting, before a restart."""
        self.last_state = self._state()
        self.exit_code = None
        self.waiting_reason, self.waiting_message = reason, message

    def status(self, *, ready: bool) -> Object:
        """Return the ContainerStatus."""
        image = self.spec["image"]
        return {
            "name": self.name,
            "state": self._state(),
            "lastState": self.last_state,
            "ready": ready and self.running,
            "restartCount": self.restarts,
            "image": image,
            "imageID": f"embedded://{image}" if self.id else "",
            "containerID": self.id,
            "started": self.running,
        }

    def _state(self) -> Object:
        if self.exit_code is not None:
            terminated: Object = {
                "exitCode": self.exit_code,
                "reason": self.reason,
                "startedAt": self.started,
                "finishedAt": self.finished,
                "containerID": self.id,
            }
            if self.message:
                terminated["message"] = self.message
            return {"terminated": terminated}
        if self.runner is not None:
            return {"running": {"startedAt": self.started}}
        waiting = {"reason": self.waiting_reason}
        if self.waiting_message:
            waiting["message"] = self.waiting_message
        return {"waiting": waiting}
