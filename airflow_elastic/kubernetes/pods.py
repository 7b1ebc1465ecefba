"""A Kubernetes pod as the model's ``Pod``: whose it is, what it takes, how it fares. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from airflow_elastic.kubernetes.quantities import pod_requests, unix_seconds
from airflow_elastic.model.demand import TaskKey
from airflow_elastic.model.labels import (
    ANNOTATION_DAG_ID,
    ANNOTATION_EXPIRES_AT,
    ANNOTATION_MAP_INDEX,
    ANNOTATION_RUN_ID,
    ANNOTATION_TASK_ID,
    LABEL_CAPACITY_CLASS,
    LABEL_PLACEHOLDER,
    LABEL_RESERVATION,
)
from airflow_elastic.model.settings import Settings
from airflow_elastic.model.snapshot import Pod, PodPhase

__all__ = ["NodeTerms", "PodFacts", "admitted_pools", "class_by_rules", "map_pod"]

_WHOLE_NUMBER = re.compile(r"-?\d{1,9}")
_MIRROR = "kubernetes.io/config.mirror"

NodeTerms = tuple[tuple[tuple[str, tuple[str, ...]], ...], ...]
"""Alternatives of (node label, admitted values), as far as they are plain ``In`` requirements."""


@dataclass(frozen=True, slots=True)
class PodFacts:
    """What one pod object says. Holds for any settings; what depends on them is decided by the view."""

    uid: str
    pod: Pod
    is_ours: bool
    """A task's pod that carries our label, or a placeholder of ours."""
    kpo_labels: tuple[str, str] | None
    """(dag_id, task_id) of a pod of a plain KubernetesPodOperator: ours where a rule of the settings says so."""
    is_daemon: bool
    """A daemonset's or static pod: it goes with its node and holds up nothing."""
    terms: NodeTerms
    ran: tuple[float, float] | None = None
    """(start, end) of its containers in Unix seconds once it has succeeded."""


def map_pod(pod: Mapping[str, Any]) -> PodFacts:
    """Return the facts of a pod object."""
    metadata = pod.get("metadata") or {}
    spec = pod.get("spec") or {}
    status = pod.get("status") or {}
    labels = metadata.get("labels") or {}
    annotations = metadata.get("annotations") or {}
    phase = _phase(status.get("phase"))
    is_placeholder = labels.get(LABEL_PLACEHOLDER) == "true"
    is_kpo = "kubernetes_pod_operator" in labels and "dag_id" in labels and "task_id" in labels
    started_at, ended_at = _container_times(status)
    return PodFacts(
        uid=str(metadata.get("uid", "")),
        pod=Pod(
            name=str(metadata.get("name", "")),
            namespace=str(metadata.get("namespace", "")),
            requests=pod_requests(spec),
            phase=phase,
            node=str(spec.get("nodeName") or ""),
            owner=None if is_placeholder else _owner(labels, annotations),
            capacity_class=str(labels.get(LABEL_CAPACITY_CLASS, "")),
            placeholder_of=(str(labels.get(LABEL_RESERVATION, "")) or "unknown") if is_placeholder else "",
            expires_at=_number(annotations.get(ANNOTATION_EXPIRES_AT)),
            created_at=unix_seconds(metadata.get("creationTimestamp")) or 0.0,
            started_at=started_at,
            unschedulable_since=_unschedulable_since(spec, status),
            is_deleting=bool(metadata.get("deletionTimestamp")),
        ),
        is_ours=is_placeholder or LABEL_CAPACITY_CLASS in labels,
        kpo_labels=(str(labels["dag_id"]), str(labels["task_id"])) if is_kpo else None,
        is_daemon=_MIRROR in annotations
        or any(each.get("kind") in ("DaemonSet", "Node") for each in metadata.get("ownerReferences") or ()),
        terms=_node_terms(spec),
        ran=(started_at, ended_at)
        if phase is PodPhase.SUCCEEDED and started_at is not None and ended_at is not None
        else None,
    )


def admitted_pools(terms: NodeTerms, settings: Settings) -> tuple[str, ...]:
    """Return the declared node pools whose selector satisfies one of ``terms``; empty where the pod states none."""
    if not terms:
        return ()
    return tuple(pool.name for pool in settings.node_pools if any(_admits(term, dict(pool.selector)) for term in terms))


def class_by_rules(dag_id: str, task_id: str, settings: Settings) -> str:
    """Return the class that the rules give to a plain KubernetesPodOperator task, or an empty string.

    Tags of the DAG are not on the pod: a rule that needs one is left to the labels.
    """
    for rule in settings.rules:
        if (
            rule.tag == "*"
            and fnmatchcase("KubernetesPodOperator", rule.operator)
            and fnmatchcase(dag_id, rule.dag_id)
            and fnmatchcase(task_id, rule.task_id)
        ):
            return rule.capacity_class
    return ""


def _admits(term: tuple[tuple[str, tuple[str, ...]], ...], selector: Mapping[str, str]) -> bool:
    shared = [(key, values) for key, values in term if key in selector]
    return bool(shared) and all(selector[key] in values for key, values in shared)


def _owner(labels: Mapping[str, str], annotations: Mapping[str, str]) -> TaskKey | None:
    """Return the task instance from our exact annotations, else as well as KubernetesPodOperator's labels allow."""
    dag_id = annotations.get(ANNOTATION_DAG_ID) or labels.get("dag_id")
    run_id = annotations.get(ANNOTATION_RUN_ID) or labels.get("run_id")
    task_id = annotations.get(ANNOTATION_TASK_ID) or labels.get("task_id")
    if not (dag_id and run_id and task_id):
        return None
    index = str(annotations.get(ANNOTATION_MAP_INDEX) or labels.get("map_index") or "-1")
    return TaskKey(dag_id, run_id, task_id, int(index) if _WHOLE_NUMBER.fullmatch(index) else -1)


def _unschedulable_since(spec: Mapping[str, Any], status: Mapping[str, Any]) -> float | None:
    if spec.get("nodeName"):
        return None
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return unix_seconds(condition.get("lastTransitionTime"))
    return None


def _container_times(status: Mapping[str, Any]) -> tuple[float | None, float | None]:
    starts, ends = [], []
    for container in status.get("containerStatuses") or ():
        state = container.get("state") or {}
        running, terminated = state.get("running") or {}, state.get("terminated") or {}
        started = unix_seconds(running.get("startedAt") or terminated.get("startedAt"))
        ended = unix_seconds(terminated.get("finishedAt"))
        if started is not None:
            starts.append(started)
        if ended is not None:
            ends.append(ended)
    return min(starts, default=None), max(ends, default=None)


def _node_terms(spec: Mapping[str, Any]) -> NodeTerms:
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    selector = tuple((str(key), (str(value),)) for key, value in sorted((spec.get("nodeSelector") or {}).items()))
    terms = tuple(
        (
            *selector,
            *(
                (str(each.get("key", "")), tuple(str(value) for value in each.get("values") or ()))
                for each in term.get("matchExpressions") or ()
                if each.get("operator") == "In"
            ),
        )
        for term in required.get("nodeSelectorTerms") or ()
    )
    return terms or ((selector,) if selector else ())


def _phase(text: Any) -> PodPhase:
    try:
        return PodPhase(str(text or "Pending"))
    except ValueError:
        return PodPhase.UNKNOWN


def _number(text: Any) -> float | None:
    try:
        number = float(text)
    except (TypeError, ValueError):
        return None
    return number if abs(number) < 1e15 else None
