"""Resource quotas: what the pods of a namespace may ask for together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_elastic.embedded.http.status import ApiError
from airflow_elastic.embedded.registry.requests import Amounts, pod_limits, pod_requests, quantity
from airflow_elastic.embedded.store.entry import ADDED, Change, Entry
from airflow_elastic.embedded.types import Object
from airflow_elastic.model.resources import format_amount

if TYPE_CHECKING:
    from airflow_elastic.embedded.plane import ControlPlane

__all__ = ["QuotaStatus", "admit"]

_STORE = "resourcequotas"
_STATUS_DELAY_SECONDS = 0.05
_COUNTED = ("cpu", "memory", "ephemeral-storage")


def admit(plane: ControlPlane, pod: Object) -> None:
    """Check a new pod against the quotas of its namespace.

    Raises:
        ApiError: 403, a quota would be exceeded, or it limits a resource that the pod does not name.
    """
    quotas = plane.store(_STORE)
    if not len(quotas):
        return
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    wanted = _usage(pod["spec"])
    for entry in quotas.entries(namespace):
        hard = _hard(entry)
        if not hard or not _in_scope(entry, pod):
            continue
        unnamed = sorted(resource for resource in hard if resource not in wanted and _is_of_pods(resource))
        if unnamed:
            raise _forbidden(name, f"failed quota: {entry.key[1]}: must specify {','.join(unnamed)}")
        used = _used(plane, entry)
        over = [r for r in sorted(hard) if used.get(r, 0) + wanted.get(r, 0) > hard[r] and wanted.get(r, 0)]
        if over:
            parts = (("requested", wanted), ("used", used), ("limited", hard))
            told = [
                f"{word}: " + ",".join(f"{r}={_shown(r, amounts.get(r, 0))}" for r in over) for word, amounts in parts
            ]
            raise _forbidden(name, f"exceeded quota: {entry.key[1]}, {', '.join(told)}")


class QuotaStatus:
    """Keeps ``status.used`` up to date; costs nothing without quotas."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._quotas = plane.store(_STORE)
        self._stale: set[str] = set()
        plane.store("pods").listen(self._on_change)
        self._quotas.listen(self._on_change)

    def _on_change(self, change: Change) -> None:
        if not len(self._quotas):
            return
        if change.type == ADDED:
            # What a creation takes is taken when it is answered.
            self._count(change.entry.key[0])
            return
        if not self._stale:
            self._plane.loop.call_later(_STATUS_DELAY_SECONDS, self._refresh)
        self._stale.add(change.entry.key[0])

    def _refresh(self) -> None:
        stale, self._stale = self._stale, set()
        for namespace in stale:
            self._count(namespace)

    def _count(self, namespace: str) -> None:
        for entry in self._quotas.entries(namespace):
            hard = (entry.obj.get("spec") or {}).get("hard") or {}
            used = _used(self._plane, entry)
            status = {"hard": hard, "used": {r: _shown(r, used.get(r, 0)) for r in hard}}
            if status != entry.obj.get("status"):
                metadata = dict(entry.obj["metadata"])
                self._quotas.put(entry.key, {**entry.obj, "metadata": metadata, "status": status})


def _hard(entry: Entry) -> Amounts:
    hard = (entry.obj.get("spec") or {}).get("hard") or {}
    return {resource: quantity(text, _plain(resource)) for resource, text in hard.items() if _is_known(resource)}


def _plain(resource: str) -> str:
    return resource.removeprefix("requests.").removeprefix("limits.")


def _is_of_pods(resource: str) -> bool:
    return _plain(resource) in _COUNTED


def _is_known(resource: str) -> bool:
    return resource in ("pods", "count/pods") or "." in resource or _is_of_pods(resource)


def _usage(spec: Object) -> Amounts:
    """Return what a pod counts for, under every name that quotas have for it."""
    requests, limits = pod_requests(spec), pod_limits(spec)
    usage: Amounts = {"pods": 1, "count/pods": 1}
    for name, amount in requests.items():
        if name != "pods":
            usage[f"requests.{name}"] = amount
            if name in _COUNTED:
                usage[name] = amount
    for name, amount in limits.items():
        usage[f"limits.{name}"] = amount
    return usage


def _used(plane: ControlPlane, quota: Entry) -> Amounts:
    total: Amounts = {}
    for entry in plane.store("pods").entries(quota.key[0]):
        if entry.obj["status"]["phase"] in ("Succeeded", "Failed") or not _in_scope(quota, entry.obj):
            continue
        for name, amount in _usage(entry.obj["spec"]).items():
            total[name] = total.get(name, 0) + amount
    return total


def _in_scope(quota: Entry, pod: Object) -> bool:
    """Tell whether a quota counts a pod, by its scopes (PriorityClass, BestEffort, Terminating and their opposites)."""
    spec = quota.obj.get("spec") or {}
    terms = [{"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ()]
    terms += (spec.get("scopeSelector") or {}).get("matchExpressions") or []
    return all(_scope_holds(term, pod) for term in terms)


def _scope_holds(term: Object, pod: Object) -> bool:
    scope = term.get("scopeName")
    best_effort = pod["status"].get("qosClass") == "BestEffort"
    terminating = pod["spec"].get("activeDeadlineSeconds") is not None
    simple: dict[str, bool] = {
        "BestEffort": best_effort,
        "NotBestEffort": not best_effort,
        "Terminating": terminating,
        "NotTerminating": not terminating,
    }
    if scope in simple:
        return simple[scope]
    if scope == "PriorityClass":
        class_name, operator = pod["spec"].get("priorityClassName"), term.get("operator")
        if operator in ("Exists", "DoesNotExist"):
            return bool(class_name) is (operator == "Exists")
        listed = class_name in list(term.get("values") or ())
        return listed is (operator == "In")
    return False


def _shown(resource: str, amount: int) -> str:
    return format_amount(_plain(resource), amount)


def _forbidden(name: str, why: str) -> ApiError:
    return ApiError(403, "Forbidden", f'pods "{name}" is forbidden: {why}', {"name": name, "kind": "pods"})
