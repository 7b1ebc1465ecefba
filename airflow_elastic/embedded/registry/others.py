"""What the API server adds to and refuses in everything that is not a pod."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from airflow_elastic.embedded import timestamps
from airflow_elastic.embedded.http.status import ApiError, bad_request, invalid, unsupported
from airflow_elastic.embedded.registry.requests import quantity
from airflow_elastic.embedded.types import Object

if TYPE_CHECKING:
    from airflow_elastic.embedded.plane import ControlPlane

__all__ = ["CREATE", "UPDATE"]

_CORDON_TAINT = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}

Create = Callable[["ControlPlane", Object], None]
Update = Callable[["ControlPlane", Object, Object], None]


def _create_node(plane: ControlPlane, node: Object) -> None:
    raise unsupported("nodes without a machine", "raise spec.replicas of a node pool (embedded.airflow-elastic.io/v1)")


def _create_node_pool(plane: ControlPlane, pool: Object) -> None:
    raise unsupported("node pools at run time", "write the node pool into the cluster's configuration")


def _update_node(plane: ControlPlane, new: Object, old: Object) -> None:
    """Keep the taint that goes with a cordon, as the node lifecycle controller does."""
    spec = new.get("spec")
    if not isinstance(spec, dict):
        spec = new["spec"] = dict(old["spec"])
    cordoned = bool(spec.get("unschedulable"))
    others = [taint for taint in spec.get("taints") or () if taint.get("key") != _CORDON_TAINT["key"]]
    had = len(others) != len(spec.get("taints") or ())
    if cordoned != had:
        spec["taints"] = [*others, {**_CORDON_TAINT, "timeAdded": timestamps.now()}] if cordoned else others
    for field in ("taints", "unschedulable"):
        if not spec.get(field):
            spec.pop(field, None)


def _create_namespace(plane: ControlPlane, namespace: Object) -> None:
    namespace["spec"] = {"finalizers": ["kubernetes"]}
    namespace["status"] = {"phase": "Active"}
    name = namespace["metadata"]["name"]
    namespace["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name


def _create_priority_class(plane: ControlPlane, entry: Object) -> None:
    name = entry["metadata"]["name"]
    value = entry.get("value")
    if not isinstance(value, int) or isinstance(value, bool):
        raise invalid("PriorityClass", "scheduling.k8s.io", name, [("value", "Required value")])
    if value > 1_000_000_000 and not name.startswith("system-"):
        rule = "Forbidden: maximum allowed value of a user defined priority is 1000000000"
        raise invalid("PriorityClass", "scheduling.k8s.io", name, [("value", rule)])
    entry["preemptionPolicy"] = entry.get("preemptionPolicy") or "PreemptLowerPriority"
    entry["globalDefault"] = bool(entry.get("globalDefault"))
    entry["description"] = entry.get("description") or ""


def _update_priority_class(plane: ControlPlane, new: Object, old: Object) -> None:
    for field in ("value", "preemptionPolicy"):
        new.setdefault(field, old[field])
        if new[field] != old[field]:
            rule = f'Invalid value: "{new[field]}": field is immutable'
            raise invalid("PriorityClass", "scheduling.k8s.io", new["metadata"]["name"], [(field, rule)])


def _create_event(plane: ControlPlane, event: Object) -> None:
    if not isinstance(event.get("involvedObject"), dict):
        raise invalid("Event", "", event["metadata"]["name"], [("involvedObject", "Required value")])
    about, own = event["involvedObject"].get("namespace") or "", event["metadata"]["namespace"]
    if own != (about or "default"):
        rule = f'Invalid value: "{about}": does not match event.namespace'
        raise invalid("Event", "", event["metadata"]["name"], [("involvedObject.namespace", rule)])
    reporter = event.setdefault("reportingComponent", "")
    event["source"] = event.get("source") or ({"component": reporter} if reporter else {})
    stamp = timestamps.now()
    for field, default in (("type", "Normal"), ("firstTimestamp", stamp), ("lastTimestamp", stamp), ("count", 1)):
        event[field] = event.get(field) or default
    event.setdefault("eventTime", None)
    event.setdefault("reportingInstance", "")


def _update_event(plane: ControlPlane, new: Object, old: Object) -> None:
    for field, value in old.items():
        new.setdefault(field, value)


def _create_budget(plane: ControlPlane, budget: Object) -> None:
    spec = budget.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        rule = "Invalid value: minAvailable and maxUnavailable cannot be both set"
        raise invalid("PodDisruptionBudget", "policy", budget["metadata"]["name"], [("spec", rule)])
    zero = {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}
    budget["status"] = zero


def _create_quota(plane: ControlPlane, quota: Object) -> None:
    hard = (quota.get("spec") or {}).get("hard") or {}
    for resource, text in hard.items():
        try:
            quantity(text, "")
        except ValueError as error:
            name = quota["metadata"]["name"]
            raise invalid("ResourceQuota", "", name, [(f"spec.hard[{resource}]", f"Invalid value: {error}")]) from None
    quota["status"] = {"hard": hard, "used": {}}


def _update_node_pool(plane: ControlPlane, new: Object, old: Object) -> None:
    plane.pools.check_spec(new, old)


def _create_lease(plane: ControlPlane, lease: Object) -> None:
    _check_lease(lease)


def _update_lease(plane: ControlPlane, new: Object, old: Object) -> None:
    _check_lease(new)


def _check_lease(lease: Object) -> None:
    spec = lease.setdefault("spec", {})
    for field in ("renewTime", "acquireTime"):
        try:
            timestamps.parse(spec.get(field) or "1970-01-01T00:00:00Z")
        except ValueError:
            why = f'parsing time "{spec[field]}" as "2006-01-02T15:04:05.000000Z07:00": cannot parse'
            raise bad_request(f'Lease in version "v1" cannot be handled as a Lease: {why}') from None
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        rule = f"Invalid value: {seconds}: must be greater than 0"
        name = lease["metadata"]["name"]
        raise invalid("Lease", "coordination.k8s.io", name, [("spec.leaseDurationSeconds", rule)])


def _create_secret(plane: ControlPlane, secret: Object) -> None:
    import base64

    data = dict(secret.get("data") or {})
    for key, text in (secret.pop("stringData", None) or {}).items():
        data[key] = base64.b64encode(str(text).encode()).decode()
    secret["data"] = data
    secret.setdefault("type", "Opaque")


def _immutable_when_set(plane: ControlPlane, new: Object, old: Object) -> None:
    if old.get("immutable") and any(new.get(part) != old.get(part) for part in ("data", "binaryData")):
        name = new["metadata"]["name"]
        raise ApiError(
            422, "Invalid", f'"{name}" is invalid: data: Forbidden: field is immutable when `immutable` is set'
        )


def _update_secret(plane: ControlPlane, new: Object, old: Object) -> None:
    _create_secret(plane, new)
    _immutable_when_set(plane, new, old)


CREATE: dict[str, Create] = {
    "nodes": _create_node,
    "nodepools.embedded.airflow-elastic.io": _create_node_pool,
    "namespaces": _create_namespace,
    "priorityclasses.scheduling.k8s.io": _create_priority_class,
    "events": _create_event,
    "poddisruptionbudgets.policy": _create_budget,
    "leases.coordination.k8s.io": _create_lease,
    "secrets": _create_secret,
    "resourcequotas": _create_quota,
}

UPDATE: dict[str, Update] = {
    "events": _update_event,
    "nodes": _update_node,
    "priorityclasses.scheduling.k8s.io": _update_priority_class,
    "nodepools.embedded.airflow-elastic.io": _update_node_pool,
    "leases.coordination.k8s.io": _update_lease,
    "configmaps": _immutable_when_set,
    "secrets": _update_secret,
}
