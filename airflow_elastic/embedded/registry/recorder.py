"""Kubernetes events that the cluster's own components emit."""

from __future__ import annotations

import secrets
from collections import OrderedDict, deque
from typing import TYPE_CHECKING

from airflow_elastic.embedded import timestamps
from airflow_elastic.embedded.types import Key, Object

if TYPE_CHECKING:
    from airflow_elastic.embedded.plane import ControlPlane

__all__ = ["EventRecorder"]

_MAX_SERIES = 4096


class EventRecorder:
    """Writes events; the same one again raises its count. The oldest go when there are too many."""

    def __init__(self, plane: ControlPlane, max_events: int) -> None:
        self._plane = plane
        self._events = plane.store("events")
        self._max_events = max_events
        self._order: deque[Key] = deque()
        self._series: OrderedDict[tuple[str, str, str], Key] = OrderedDict()

    def emit(
        self, about: Object, reason: str, message: str, component: str, *, warning: bool = False, host: str = "",
        repeats: bool = False,
    ) -> None:  # fmt: skip
        """Record an event about an object; ``repeats`` says that the same may come again and is to be counted."""
        metadata = about["metadata"]
        stamp = timestamps.now()
        if repeats and self._count_again((metadata["uid"], reason, message), stamp):
            return
        kind = about["kind"]
        namespace = metadata.get("namespace") or "default"
        name = f"{metadata['name']}.{secrets.token_hex(8)}"
        event: Object = {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {
                "name": name, "namespace": namespace, "uid": secrets.token_hex(16), "creationTimestamp": stamp,
            },
            "involvedObject": {
                "kind": kind,
                "apiVersion": about["apiVersion"],
                "name": metadata["name"],
                # kubectl describe node looks for events by uid = name, which is what kubelets send.
                "uid": metadata["name"] if kind == "Node" else metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
            },
            "reason": reason,
            "message": message,
            "source": {"component": component, "host": host} if host else {"component": component},
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
            "type": "Warning" if warning else "Normal",
            "eventTime": None,
            "reportingComponent": component,
            "reportingInstance": host,
        }  # fmt: skip
        if "namespace" in metadata:
            event["involvedObject"]["namespace"] = namespace
        key = (namespace, name)
        self._events.put(key, event)
        self._order.append(key)
        if repeats:
            self._remember((metadata["uid"], reason, message), key)
        if len(self._order) > self._max_events:
            oldest = self._order.popleft()
            if oldest in self._events:
                self._events.remove(oldest)

    def _count_again(self, series: tuple[str, str, str], stamp: str) -> bool:
        key = self._series.get(series)
        entry = self._events.get(key) if key else None
        if key is None or entry is None:
            return False
        metadata = dict(entry.obj["metadata"])
        self._events.put(
            key, {**entry.obj, "metadata": metadata, "count": entry.obj["count"] + 1, "lastTimestamp": stamp}
        )
        return True

    def _remember(self, series: tuple[str, str, str], key: Key) -> None:
        self._series[series] = key
        if len(self._series) > _MAX_SERIES:
            self._series.popitem(last=False)
