"""Pod disruption budgets: how many of the selected pods may be evicted now."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from airflow_elastic.embedded.http.status import ApiError
from airflow_elastic.embedded.registry.conditions import find_condition
from airflow_elastic.embedded.selectors import selector_matches
from airflow_elastic.embedded.store.entry import Change, Entry
from airflow_elastic.embedded.types import Object

if TYPE_CHECKING:
    from airflow_elastic.embedded.plane import ControlPlane

__all__ = ["BudgetStatus", "allows", "matching", "take_disruption"]

_STORE = "poddisruptionbudgets.policy"
_STATUS_DELAY_SECONDS = 0.05


def matching(plane: ControlPlane, pod: Object) -> list[Entry]:
    """Return the budgets that select a pod."""
    collection = plane.store(_STORE)
    if not len(collection):
        return []
    labels = pod["metadata"].get("labels") or {}
    return [
        entry
        for entry in collection.entries(pod["metadata"]["namespace"])
        if selector_matches((entry.obj.get("spec") or {}).get("selector"), labels)
    ]


def allows(plane: ControlPlane, pod: Object) -> bool:
    """Tell whether every budget of a pod has a disruption left (preemption prefers such victims)."""
    return all(_status(plane, budget)["disruptionsAllowed"] > 0 for budget in matching(plane, pod))


class BudgetStatus:
    """Keeps the status of budgets up to date as pods come, go and change; costs nothing without budgets."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._budgets = plane.store(_STORE)
        self._stale: set[str] = set()
        plane.store("pods").listen(self._on_change)
        self._budgets.listen(self._on_change)

    def _on_change(self, change: Change) -> None:
        if not len(self._budgets):
            return
        if not self._stale:
            # Later, so that many changes at once cost one count.
            self._plane.loop.call_later(_STATUS_DELAY_SECONDS, self._refresh)
        self._stale.add(change.entry.key[0])

    def _refresh(self) -> None:
        stale, self._stale = self._stale, set()
        for namespace in stale:
            for entry in self._budgets.entries(namespace):
                status = _status(self._plane, entry)
                if status != entry.obj["status"]:
                    metadata = dict(entry.obj["metadata"])
                    self._budgets.put(entry.key, {**entry.obj, "metadata": metadata, "status": status})


def take_disruption(plane: ControlPlane, budget: Entry, pod: Object, *, dry_run: bool) -> None:
    """Use one disruption of a budget for a pod.

    Raises:
        ApiError: 429, none is left.
    """
    status = _status(plane, budget)
    if _healthy(pod) and status["disruptionsAllowed"] < 1:
        name = budget.key[1]
        needed = f"The disruption budget {name} needs {status['desiredHealthy']} healthy pods"
        cause = {"reason": "DisruptionBudget", "message": f"{needed} and has {status['currentHealthy']} currently"}
        message = "Cannot evict pod as it would violate the pod's disruption budget."
        raise ApiError(429, "TooManyRequests", message, {"causes": [cause]})


def _healthy(pod: Object) -> bool:
    ready = find_condition(pod, "Ready")
    return bool(ready and ready["status"] == "True" and not pod["metadata"].get("deletionTimestamp"))


def _has_controller(pod: Object) -> bool:
    return any(owner.get("controller") for owner in pod["metadata"].get("ownerReferences") or ())


def _status(plane: ControlPlane, budget: Entry) -> Object:
    spec = budget.obj.get("spec") or {}
    selected = [
        entry.obj
        for entry in plane.store("pods").entries(budget.key[0])
        if selector_matches(spec.get("selector"), entry.labels)
        and entry.obj["status"]["phase"] not in ("Succeeded", "Failed")
    ]
    healthy = sum(1 for pod in selected if _healthy(pod))
    expected = len(selected)
    least = spec.get("minAvailable")
    if least is None or isinstance(least, str):
        # Shares are shares of a controller's replicas. Pods without one, as those of tasks, count as none, and then
        # nothing may be evicted: a trap of the real API server, kept.
        expected = sum(1 for pod in selected if _has_controller(pod))
    if least is not None:
        desired = _count(least, expected)
    else:
        desired = max(0, expected - _count(spec.get("maxUnavailable", 0), expected))
    allowed = max(0, healthy - desired) if expected else 0
    return {
        "observedGeneration": 1,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "disruptionsAllowed": allowed,
        "expectedPods": expected,
    }


def _count(value: int | str, total: int) -> int:
    if isinstance(value, str) and value.endswith("%"):
        return math.ceil(float(value[:-1]) / 100 * total)
    return int(value)
