"""Static filters: what a node is, against what a pod accepts (selector, affinity, taints)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from airflow_elastic.embedded.scheduler.infos import Constraints, NodeInfo
from airflow_elastic.embedded.types import Object

__all__ = ["Verdict", "judge", "judge_shape", "tolerates", "untolerated"]

AFFINITY_MISMATCH = "node(s) didn't match Pod's node affinity/selector"
UNSCHEDULABLE = "node(s) were unschedulable"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the static filters say about one node for one kind of pod."""

    reason: str
    """Why the pod may not go there; "" when it may."""
    preferred_weight: int = 0
    avoided_taints: int = 0


def judge(constraints: Constraints, node: NodeInfo) -> Verdict:
    """Return the verdict on a node, remembered until the node changes."""
    verdict: Verdict | None = node.verdicts.get(constraints.number)
    if verdict is None:
        verdict = judge_shape(constraints, node.name, node.labels, node.taints, node.unschedulable)
        node.verdicts[constraints.number] = verdict
    return verdict


def judge_shape(
    constraints: Constraints,
    name: str,
    labels: Mapping[str, str],
    taints: Sequence[Object],
    unschedulable: bool = False,
) -> Verdict:
    """Return the verdict on a node that may not exist yet."""
    if unschedulable and not tolerates(
        constraints.tolerations, {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    ):
        return Verdict(UNSCHEDULABLE)
    blocking = untolerated(constraints.tolerations, taints, ("NoSchedule", "NoExecute"))
    if blocking is not None:
        return Verdict(f"node(s) had untolerated taint {{{blocking['key']}: {blocking.get('value') or ''}}}")
    if any(labels.get(key) != value for key, value in constraints.node_selector.items()):
        return Verdict(AFFINITY_MISMATCH)
    required = constraints.affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is not None and not any(
        _term_matches(term, name, labels) for term in required.get("nodeSelectorTerms") or ()
    ):
        return Verdict(AFFINITY_MISMATCH)
    weight = sum(
        int(preference.get("weight", 1))
        for preference in constraints.affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        if _term_matches(preference.get("preference") or {}, name, labels)
    )
    avoided = sum(
        1 for taint in taints if taint["effect"] == "PreferNoSchedule" and not tolerates(constraints.tolerations, taint)
    )
    return Verdict("", weight, avoided)


def untolerated(tolerations: Sequence[Object], taints: Sequence[Object], effects: Sequence[str]) -> Object | None:
    """Return the first taint of the given effects that no toleration covers."""
    for taint in taints:
        if taint["effect"] in effects and not tolerates(tolerations, taint):
            return taint
    return None


def tolerates(tolerations: Sequence[Object], taint: Object) -> bool:
    """Tell whether any toleration covers a taint."""
    return any(_covers(toleration, taint) for toleration in tolerations)


def _covers(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")


def _term_matches(term: Object, name: str, labels: Mapping[str, str]) -> bool:
    """Tell whether every expression of a term holds; an empty term selects nothing."""
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    return all(_holds(expression, labels) for expression in expressions) and all(
        expression.get("key") == "metadata.name" and _holds(expression, {"metadata.name": name})
        for expression in fields
    )


def _holds(expression: Object, labels: Mapping[str, str]) -> bool:
    key, operator = expression.get("key", ""), expression.get("operator")
    values = expression.get("values") or []
    present = labels.get(key)
    if operator == "In":
        return present in values
    if operator == "NotIn":
        return present not in values
    if operator == "Exists":
        return present is not None
    if operator == "DoesNotExist":
        return present is None
    if operator in ("Gt", "Lt") and present is not None and len(values) == 1:
        try:
            left, right = int(present), int(values[0])
        except ValueError:
            return False
        return left > right if operator == "Gt" else left < right
    return False
