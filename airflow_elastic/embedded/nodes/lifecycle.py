"""What a cluster's node controllers do: NoExecute taints end pods, pods of nodes that do not exist are collected."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from airflow_elastic.embedded.registry.pod_deletion import TERMINAL_PHASES
from airflow_elastic.embedded.scheduler.filters import tolerates
from airflow_elastic.embedded.store.entry import DELETED, Change, Entry
from airflow_elastic.embedded.types import Object

if TYPE_CHECKING:
    from airflow_elastic.embedded.plane import ControlPlane

__all__ = ["TaintManager"]


class TaintManager:
    """Ends pods on nodes with a NoExecute taint that they do not tolerate, or no longer tolerate."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._timers: dict[str, asyncio.TimerHandle] = {}
        plane.store("nodes").listen(self._on_node_change)
        plane.store("pods").listen(self._on_pod_change)

    def _on_node_change(self, change: Change) -> None:
        if change.type == DELETED:
            return
        before = _no_execute(change.previous.obj) if change.previous else []
        taints = _no_execute(change.entry.obj)
        if taints == before:
            return
        for entry in self._plane.scheduler.pods_on(change.entry.key[1]):
            self._judge(entry, taints)

    def _on_pod_change(self, change: Change) -> None:
        if change.type == DELETED:
            timer = self._timers.pop(change.entry.uid, None)
            if timer is not None:
                timer.cancel()
            return
        node = change.entry.obj["spec"].get("nodeName")
        if not node or (change.previous and change.previous.obj["spec"].get("nodeName")):
            return
        found = self._plane.store("nodes").get(("", node))
        taints = _no_execute(found.obj) if found else []
        if taints:
            self._plane.loop.call_soon(self._judge_later, change.entry, taints)

    def _judge_later(self, entry: Entry, taints: list[Object]) -> None:
        present = self._plane.store("pods").get(entry.key)
        if present is not None and present.uid == entry.uid:
            self._judge(present, taints)

    def _judge(self, entry: Entry, taints: list[Object]) -> None:
        timer = self._timers.pop(entry.uid, None)
        if timer is not None:
            timer.cancel()
        pod = entry.obj
        if not taints or pod["status"]["phase"] in TERMINAL_PHASES:
            return
        tolerations = pod["spec"].get("tolerations") or []
        seconds = float("inf")
        for taint in taints:
            covering = [toleration for toleration in tolerations if tolerates([toleration], taint)]
            if not covering:
                seconds = 0.0
                break
            limits = [t["tolerationSeconds"] for t in covering if t.get("tolerationSeconds") is not None]
            if limits:
                seconds = min(seconds, float(min(limits)))
        if seconds == 0:
            self._end(entry)
        elif seconds != float("inf"):
            self._timers[entry.uid] = self._plane.loop.call_later(seconds, self._end, entry)

    def _end(self, entry: Entry) -> None:
        self._timers.pop(entry.uid, None)
        present = self._plane.store("pods").get(entry.key)
        if present is None or present.uid != entry.uid or present.obj["metadata"].get("deletionTimestamp"):
            return
        self._plane.recorder.emit(
            present.obj,
            "TaintManagerEviction",
            f"Marking for deletion Pod {entry.key[0]}/{entry.key[1]}",
            "taint-eviction-controller",
        )
        self._plane.pod_deletion.disrupt(
            present, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"
        )


def _no_execute(node: Object) -> list[Object]:
    return [taint for taint in node["spec"].get("taints") or () if taint["effect"] == "NoExecute"]
