"""Places the pods of plain KubernetesPodOperator tasks that the policy has tagged, just before they are created.

The policy and the launch happen in the same worker process, one after the other: a register in memory joins them. The
operator's own arguments stay as their author wrote them, and what a template says is merged, not replaced.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from airflow_elastic.operators.identity import identity_annotations
from airflow_elastic.operators.tagging import Tag

if TYPE_CHECKING:
    from kubernetes.client import models as k8s

__all__ = ["place_tagged_pod", "remember"]

log = logging.getLogger(__name__)

_tags: dict[tuple[str, str], Tag] = {}


def remember(dag_id: str, task_id: str, tag: Tag) -> None:
    """Keep a task's tag for the launch of its pods."""
    from airflow.providers.cncf.kubernetes.pod_generator import make_safe_label_value

    _tags[make_safe_label_value(dag_id), make_safe_label_value(task_id)] = tag


def place_tagged_pod(pod: k8s.V1Pod) -> None:
    """Edit a pod of KubernetesPodOperator if the policy has tagged its task.

    Raises:
        TaskTooWide: no node of its class can ever hold it.
    """
    labels = pod.metadata.labels or {}
    tag = _tags.get((labels.get("dag_id", ""), labels.get("task_id", "")))
    if tag is None:
        return
    if tag.acts and tag.capacity.impossible:
        from airflow_elastic.operators.errors import TaskTooWide

        raise TaskTooWide(tag.capacity.impossible)
    from airflow.sdk import get_current_context

    from airflow_elastic.operators.placing import place

    try:
        identity = identity_annotations(get_current_context())
    except RuntimeError:  # a dry run
        identity = {}
    place(pod, tag.placement, identity)
