"""Pods as tests write them, and where they are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from conformance.clusters import OWN_LABEL, Cluster, until
from conformance.rest import Answer, Object, Rest

__all__ = ["TERMINAL", "Namespace", "condition", "pod", "requests", "status_of"]

TERMINAL = ("Succeeded", "Failed")


def pod(name: str, *, seconds: float | None = None, **parts: Any) -> Object:
    """Return a pod with one container named base.

    ``seconds`` makes it last that long without a program. Other parts: ``labels``, ``annotations``, ``finalizers``
    (metadata), ``container`` (merged into the container), everything else goes into the spec.
    """
    annotations = dict(parts.pop("annotations", {}))
    if seconds is not None:
        annotations["airflow-elastic.io/run-seconds"] = str(seconds)
    metadata: Object = {"name": name, "annotations": annotations, "labels": parts.pop("labels", {})}
    if "finalizers" in parts:
        metadata["finalizers"] = parts.pop("finalizers")
    container = {"name": "base", "image": "localhost/busybox:1", **parts.pop("container", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"restartPolicy": "Never", "containers": [container], **parts},
    }


def requests(**amounts: str) -> Object:
    """Return the part of a container that asks for resources."""
    return {"resources": {"requests": {name.replace("_", "-"): amount for name, amount in amounts.items()}}}


def condition(body: Object, kind: str) -> Object:
    """Return one condition of an object, empty when it has none of that kind."""
    found: Iterable[Object] = body.get("status", {}).get("conditions") or ()
    return next((each for each in found if each["type"] == kind), {})


def status_of(body: Object, container: str = "base") -> Object:
    """Return a container's status, empty when there is none."""
    status = body.get("status", {})
    found: Iterable[Object] = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return next((each for each in found if each["name"] == container), {})


class Namespace:
    """One test's own namespace of one cluster."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.rest: Rest = cluster.rest
        self.path = f"/api/v1/namespaces/{name}"
        self.pods = f"{self.path}/pods"

    def create(self, body: Object) -> Object:
        """Create a pod."""
        return self.rest.made(self.pods, body)

    def run(self, name: str, script: str, **parts: Any) -> Object:
        """Create a pod that runs a shell script as a real process."""
        container = {"command": ["/bin/sh", "-c", script], **parts.pop("container", {})}
        return self.create(pod(name, container=container, nodeName=self.cluster.process_node, **parts))

    def place(self, node: str, name: str, *, seconds: float | None = 600.0, **parts: Any) -> Object:
        """Create a pod that only one node of the test can take; the scheduler decides."""
        return self.create(pod(name, seconds=seconds, nodeSelector={OWN_LABEL: node}, **parts))

    def get(self, name: str) -> Answer:
        """Read a pod."""
        return self.rest.get(f"{self.pods}/{name}")

    def pod(self, name: str) -> Object:
        """Return a pod that exists."""
        answer = self.get(name)
        assert answer.code == 200, answer
        body: Object = answer.body
        return body

    def phase(self, name: str) -> str:
        """Return a pod's phase; empty when it does not exist."""
        answer = self.get(name)
        return str(answer.body["status"].get("phase", "")) if answer.code == 200 else ""

    def until_phase(self, name: str, *phases: str, seconds: float = 40.0) -> Object:
        """Wait for one of some phases and return the pod."""
        until(lambda: self.phase(name) in phases, seconds, f"pod {name} is {' or '.join(phases)}: {self.get(name)}")
        return self.pod(name)

    def finished(self, name: str, seconds: float = 40.0) -> Object:
        """Wait for the end of a pod and return it."""
        return self.until_phase(name, *TERMINAL, seconds=seconds)

    def until_gone(self, name: str, seconds: float = 40.0) -> None:
        """Wait until a pod's object does not exist."""
        until(lambda: self.get(name).code == 404, seconds, f"pod {name} is gone")

    def until_condition(self, name: str, kind: str, status: str = "True", seconds: float = 20.0) -> Object:
        """Wait for a condition of a pod and return the condition."""
        found = until(
            lambda: (each := condition(self.get(name).body, kind)).get("status") == status and each,
            seconds,
            f"{name}: {kind} is {status}",
        )
        return dict(found)

    def log(self, name: str, **query: Any) -> str:
        """Return a pod's log."""
        answer = self.rest.get(f"{self.pods}/{name}/log", **query)
        assert answer.code == 200, answer
        return str(answer.body)

    def reasons(self, name: str) -> list[str]:
        """Return the reasons of the events about an object."""
        return [event["reason"] for event in self.cluster.events(self.name, name)]
