"""Puts a placement on Kubernetes objects: what the user stated stays and is narrowed, never overwritten."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from airflow.providers.cncf.kubernetes.backcompat.backwards_compat_converters import convert_affinity
from kubernetes.client import models as k8s

from airflow_elastic.kubernetes.placement import Placement

__all__ = ["merged_affinity", "merged_tolerations", "place"]


def place(pod: k8s.V1Pod, placement: Placement, annotations: Mapping[str, str]) -> None:
    """Edit a pod that is about to be created."""
    spec = pod.spec
    if placement.node_affinity:
        spec.affinity = merged_affinity(spec.affinity, placement.node_affinity)
    if placement.tolerations:
        spec.tolerations = merged_tolerations(spec.tolerations, placement.tolerations)
    if placement.priority_class_name and not spec.priority_class_name:
        spec.priority_class_name = placement.priority_class_name
    pod.metadata.labels = {**(pod.metadata.labels or {}), **placement.labels}
    # A user's own word on eviction wins over the class's.
    pod.metadata.annotations = {**placement.annotations, **(pod.metadata.annotations or {}), **annotations}


def merged_affinity(stated: k8s.V1Affinity | Mapping[str, Any] | None, ours: Mapping[str, Any]) -> k8s.V1Affinity:
    """Return an affinity that asks for what the user stated *and* for one of our node pools.

    ``ours`` is a ``nodeAffinity`` as the API has it. Node selector terms are alternatives, so both demands together are
    every user's term joined with every one of ours. Our preferences come after the user's.
    """
    addition = convert_affinity({"nodeAffinity": dict(ours)}).node_affinity
    if not stated:
        return k8s.V1Affinity(node_affinity=addition)
    affinity = convert_affinity(dict(stated) if isinstance(stated, Mapping) else stated)
    node = affinity.node_affinity or k8s.V1NodeAffinity()
    return k8s.V1Affinity(
        node_affinity=k8s.V1NodeAffinity(
            required_during_scheduling_ignored_during_execution=_both(
                node.required_during_scheduling_ignored_during_execution,
                addition.required_during_scheduling_ignored_during_execution,
            ),
            preferred_during_scheduling_ignored_during_execution=[
                *(node.preferred_during_scheduling_ignored_during_execution or ()),
                *(addition.preferred_during_scheduling_ignored_during_execution or ()),
            ]
            or None,
        ),
        pod_affinity=affinity.pod_affinity,
        pod_anti_affinity=affinity.pod_anti_affinity,
    )


def merged_tolerations(
    stated: Sequence[k8s.V1Toleration] | None, ours: Iterable[Mapping[str, Any]]
) -> list[k8s.V1Toleration]:
    """Return the user's tolerations and those of ours that are not among them."""
    result = list(stated or ())
    for each in ours:
        toleration = k8s.V1Toleration(
            key=each.get("key"), operator=each.get("operator"), value=each.get("value"), effect=each.get("effect")
        )
        if toleration not in result:
            result.append(toleration)
    return result


def _both(stated: k8s.V1NodeSelector | None, ours: k8s.V1NodeSelector | None) -> k8s.V1NodeSelector | None:
    if stated is None or ours is None:
        return stated or ours
    # An empty term matches no node; joined with ours it would match some.
    terms = [term for term in stated.node_selector_terms or () if term.match_expressions or term.match_fields]
    if not terms:
        return stated
    return k8s.V1NodeSelector(
        node_selector_terms=[
            k8s.V1NodeSelectorTerm(
                match_expressions=[*(one.match_expressions or ()), *(other.match_expressions or ())] or None,
                match_fields=[*(one.match_fields or ()), *(other.match_fields or ())] or None,
            )
            for one in terms
            for other in ours.node_selector_terms or ()
        ]
    )
