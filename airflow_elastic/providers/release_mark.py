"""The mark on a node that is to go: cordoned, annotated with the time, checked for pods that came just before."""

from __future__ import annotations

from typing import Any

from airflow_elastic.errors import TemporaryError
from airflow_elastic.model.labels import ANNOTATION_RELEASE, GROUP, LABEL_PLACEHOLDER
from airflow_elastic.providers.base import ClusterCalls, ProviderRefused

__all__ = ["ANNOTATION_CORDONED", "ReleaseMarks"]

ANNOTATION_CORDONED = f"{GROUP}/cordoned"
"""On a node that we cordoned for its release: only that cordon may we lift again."""

_MERGE_PATCH = "application/merge-patch+json"
_CLOCK_SECONDS = 60.0
_REMOVAL_TAINTS = ("ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted")


class ReleaseMarks:
    """Sets, checks and lifts the mark."""

    def __init__(self, api: ClusterCalls) -> None:
        self._api = api

    def release(self, node: str, now: float) -> str:
        """Mark and cordon a node; return why it stays after all (a pod came meanwhile), or an empty string.

        A node that is gone counts as released.
        """
        raw = self._node(node)
        if raw is None:
            return ""
        metadata, spec = raw.get("metadata") or {}, raw.get("spec") or {}
        marks: dict[str, str | None] = {ANNOTATION_RELEASE: f"{now:.3f}"}
        if not spec.get("unschedulable"):
            marks[ANNOTATION_CORDONED] = "true"
        if ANNOTATION_RELEASE not in (metadata.get("annotations") or {}):
            self._patch(node, marks, unschedulable=True)
        # Only now that nothing new can be bound there does the answer hold.
        pod = self._pod_on(node)
        if pod:
            self.undo(node)
            return f"pod {pod} came there meanwhile"
        return ""

    def undo(self, node: str) -> bool:
        """Take the mark off, and the cordon where it is ours; return whether there was a mark."""
        raw = self._node(node)
        annotations = ((raw or {}).get("metadata") or {}).get("annotations") or {}
        if raw is None or ANNOTATION_RELEASE not in annotations:
            return False
        ours = annotations.get(ANNOTATION_CORDONED) == "true"
        self._patch(node, {ANNOTATION_RELEASE: None, ANNOTATION_CORDONED: None}, unschedulable=None if ours else True)
        return True

    def is_stale(self, node: str, before: float) -> bool:
        """Tell whether the node carries our mark from before a time, and nobody is removing it.

        A mark from the future counts too: the clock was set back since, and it would be respected for as long.
        """
        raw = self._node(node)
        if raw is None:
            return False
        metadata = raw.get("metadata") or {}
        mark = (metadata.get("annotations") or {}).get(ANNOTATION_RELEASE)
        taints = (raw.get("spec") or {}).get("taints") or ()
        if mark is None or metadata.get("deletionTimestamp"):
            return False
        if any(str(taint.get("key", "")).startswith(_REMOVAL_TAINTS) for taint in taints):
            return False
        try:
            return not before <= float(mark) <= before + _CLOCK_SECONDS
        except ValueError:
            return True

    def _node(self, node: str) -> dict[str, Any] | None:
        status, answer = self._api.call("GET", f"/api/v1/nodes/{node}")
        if status == 404:
            return None
        if status >= 300:
            raise ProviderRefused(
                f"reading node {node} answered {status}: {answer.get('message', '')}; allow get on nodes"
            )
        return answer

    def _patch(self, node: str, annotations: dict[str, str | None], *, unschedulable: bool | None) -> None:
        body = {"metadata": {"annotations": annotations}, "spec": {"unschedulable": unschedulable}}
        status, answer = self._api.call("PATCH", f"/api/v1/nodes/{node}", body, content_type=_MERGE_PATCH)
        if status == 404:
            return
        if status == 409:
            raise TemporaryError(f"node {node} changed meanwhile; it is marked at the next tick")
        if status >= 300:
            raise ProviderRefused(
                f"cordoning node {node} answered {status}: {answer.get('message', '')}; allow patch on nodes"
            )

    def _pod_on(self, node: str) -> str:
        """Return a pod that would be lost with the node: neither ended, nor a daemonset's, nor a placeholder."""
        status, answer = self._api.call("GET", "/api/v1/pods", query={"fieldSelector": f"spec.nodeName={node}"})
        if status >= 300:
            raise ProviderRefused(f"listing the pods of node {node} answered {status}: {answer.get('message', '')}")
        for pod in answer.get("items") or ():
            metadata = pod.get("metadata") or {}
            if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
                continue
            if (metadata.get("labels") or {}).get(LABEL_PLACEHOLDER) == "true":
                continue
            if "kubernetes.io/config.mirror" in (metadata.get("annotations") or {}):
                continue
            if any(each.get("kind") in ("DaemonSet", "Node") for each in metadata.get("ownerReferences") or ()):
                continue
            return f"{metadata.get('namespace')}/{metadata.get('name')}"
        return ""
