"""The lives of nodes and pods, replayed from the embedded cluster's event log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airflow_elastic.model.labels import (
    ANNOTATION_DAG_ID,
    ANNOTATION_MAP_INDEX,
    ANNOTATION_RUN_ID,
    ANNOTATION_TASK_ID,
    LABEL_PLACEHOLDER,
)

__all__ = ["ClusterHistory", "EventLogTail", "NodeLife", "PodLife", "TaskId"]

TaskId = tuple[str, str, str, int]
"""(dag_id, run_id, task_id, map_index)"""

_FOREVER = float("inf")


@dataclass(slots=True)
class NodeLife:
    """One machine, from the request to the end of its bill."""

    name: str
    pool: str
    requested_at: float
    allocatable: Mapping[str, int] = field(default_factory=dict)
    ready_at: float | None = None
    """When it first was Ready."""
    ended_at: float = _FOREVER
    usable: list[tuple[float, float]] = field(default_factory=list)
    """Intervals in which it was Ready and not cordoned."""
    _is_ready: bool = False
    _is_cordoned: bool = False

    def note(self, time: float, *, ready: bool | None = None, cordoned: bool | None = None) -> None:
        """Take in a change of the node's condition."""
        was = self._is_ready and not self._is_cordoned
        self._is_ready = self._is_ready if ready is None else ready
        self._is_cordoned = self._is_cordoned if cordoned is None else cordoned
        now = self._is_ready and not self._is_cordoned
        if now and not was:
            self.usable.append((time, _FOREVER))
        elif was and not now:
            self.usable[-1] = (self.usable[-1][0], time)
        if ready and self.ready_at is None:
            self.ready_at = time


@dataclass(slots=True)
class PodLife:
    """One pod."""

    name: str
    created_at: float
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    requests: Mapping[str, int] = field(default_factory=dict)
    node: str = ""
    unschedulable_at: float | None = None
    bound_at: float | None = None
    running_at: float | None = None
    finished_at: float | None = None
    gone_at: float = _FOREVER

    @property
    def task(self) -> TaskId | None:
        """Return the task instance that it works for, by its annotations; None for any other pod.

        A placeholder names its run too, but works for nobody.
        """
        if ANNOTATION_DAG_ID not in self.annotations or self.is_placeholder:
            return None
        index = self.annotations.get(ANNOTATION_MAP_INDEX, "-1")
        return (
            self.annotations[ANNOTATION_DAG_ID],
            self.annotations.get(ANNOTATION_RUN_ID, ""),
            self.annotations.get(ANNOTATION_TASK_ID, ""),
            int(index) if index.lstrip("-").isdigit() else -1,
        )

    @property
    def is_placeholder(self) -> bool:
        """Tell whether it only holds room."""
        return self.labels.get(LABEL_PLACEHOLDER) == "true"

    @property
    def occupies(self) -> tuple[float, float] | None:
        """Return from when to when it took room on its node."""
        if self.bound_at is None:
            return None
        return self.bound_at, min(self.gone_at, self.finished_at if self.finished_at is not None else _FOREVER)

    def unschedulable_seconds(self, now: float) -> float:
        """Return how long it was known to fit nowhere."""
        if self.unschedulable_at is None:
            return 0.0
        return max(0.0, min(self.gone_at, now if self.bound_at is None else self.bound_at) - self.unschedulable_at)


class ClusterHistory:
    """All nodes and pods of an event log; events may be added at any time, in their order."""

    def __init__(self, events: Iterable[Mapping[str, Any]] = ()) -> None:
        self.nodes: dict[str, NodeLife] = {}
        self.pods: dict[str, PodLife] = {}
        """By uid where the log has one (names recur), in order of creation."""
        for event in events:
            self.add(event)

    def add(self, event: Mapping[str, Any]) -> None:
        """Take in one event; kinds that say nothing about nodes and pods are passed over."""
        kind, time = str(event["kind"]), float(event["t"])
        if kind.startswith("node_"):
            self._add_node_event(kind, time, event)
        elif kind.startswith("pod_"):
            self._add_pod_event(kind, time, event)

    def _add_node_event(self, kind: str, time: float, event: Mapping[str, Any]) -> None:
        name = str(event["node"])
        node = self.nodes.get(name)
        if node is None:
            node = self.nodes[name] = NodeLife(name, str(event.get("pool", "")), time)
        if event.get("allocatable"):
            node.allocatable = event["allocatable"]
        if kind == "node_ready":
            node.note(time, ready=True)
        elif kind == "node_not_ready":
            node.note(time, ready=False)
        elif kind == "node_cordoned":
            node.note(time, cordoned=True)
        elif kind == "node_uncordoned":
            node.note(time, cordoned=False)
        elif kind == "node_deleted":
            node.note(time, ready=False)
            node.ended_at = time

    def _add_pod_event(self, kind: str, time: float, event: Mapping[str, Any]) -> None:
        key = str(event.get("uid") or event["pod"])
        pod = self.pods.get(key)
        if pod is None or (kind == "pod_created" and pod.gone_at < _FOREVER):
            pod = self.pods[key] = PodLife(str(event["pod"]), time)
        for name in ("labels", "annotations", "requests"):
            if event.get(name):
                setattr(pod, name, event[name])
        if kind == "pod_unschedulable" and pod.unschedulable_at is None:
            pod.unschedulable_at = time
        elif kind == "pod_bound":
            pod.bound_at, pod.node = time, str(event["node"])
        elif kind == "pod_running" and pod.running_at is None:
            pod.running_at = time
        elif kind == "pod_finished":
            pod.finished_at = time
        elif kind == "pod_deleted":
            pod.gone_at = time


class EventLogTail:
    """Reads an event log as it grows; a line that is not complete yet is left for the next time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def read(self) -> list[dict[str, Any]]:
        """Return the events since the last call."""
        try:
            with self._path.open("rb") as log:
                log.seek(self._offset)
                data = log.read()
        except FileNotFoundError:
            return []
        complete = data[: data.rfind(b"\n") + 1]
        self._offset += len(complete)
        return [json.loads(line) for line in complete.splitlines() if line.strip()]
