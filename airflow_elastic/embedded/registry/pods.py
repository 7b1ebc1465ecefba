"""What the API server adds to pods: defaults, priority admission, the first status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_elastic.embedded import timestamps
from airflow_elastic.embedded.http.status import ApiError
from airflow_elastic.embedded.registry import quotas
from airflow_elastic.embedded.registry.requests import qos_class
from airflow_elastic.embedded.registry.validation import check_pod_spec, check_pod_update
from airflow_elastic.embedded.types import Object

if TYPE_CHECKING:
    from airflow_elastic.embedded.plane import ControlPlane

__all__ = ["prepare_create", "prepare_update"]

_SPEC_DEFAULTS = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "serviceAccountName": "default",
    "enableServiceLinks": True,
}
_CONTAINER_DEFAULTS = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
# DefaultTolerationSeconds admission: five minutes on a node that is not ready or cannot be reached.
_NODE_LOSS_TOLERATIONS = tuple(
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("not-ready", "unreachable")
)


def prepare_create(plane: ControlPlane, pod: Object) -> None:
    """Fill defaults, admit the priority and set the first status, in place.

    Raises:
        ApiError: the pod is refused.
    """
    name = pod["metadata"]["name"]
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        raise ApiError(422, "Invalid", f'Pod "{name}" is invalid: spec: Required value')
    for key, value in _SPEC_DEFAULTS.items():
        if spec.get(key) is None:
            spec[key] = value
    spec.setdefault("securityContext", {})
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    check_pod_spec(name, spec)
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
        _default_container(container)
    _admit_priority(plane, name, spec)
    _add_tolerations(spec)
    conditions = []
    if spec.get("schedulingGates"):
        conditions.append(
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastProbeTime": None,
                "lastTransitionTime": timestamps.now(),
            }
        )
    pod["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}
    if conditions:
        pod["status"]["conditions"] = conditions
    quotas.admit(plane, pod)


def prepare_update(plane: ControlPlane, new: Object, old: Object) -> None:
    """Check a changed pod and fill what an update may leave out, in place.

    Raises:
        ApiError: a field that cannot change has changed.
    """
    spec, before = new["spec"], old["spec"]
    if not spec.get("restartPolicy"):
        spec["restartPolicy"] = before["restartPolicy"]
    check_pod_spec(new["metadata"]["name"], spec)
    for key in (*_SPEC_DEFAULTS, "securityContext", "priority", "preemptionPolicy", "nodeName", "tolerations"):
        if spec.get(key) is None and key in before:
            spec[key] = before[key]
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
        _default_container(container)
    check_pod_update(new["metadata"]["name"], spec, before)


def _default_container(container: Object) -> None:
    for key, value in _CONTAINER_DEFAULTS.items():
        if container.get(key) is None:
            container[key] = value
    if container.get("imagePullPolicy") is None:
        image = container["image"]
        moving = ":" not in image.rpartition("/")[2] or image.endswith(":latest")
        container["imagePullPolicy"] = "Always" if moving else "IfNotPresent"
    resources = container.get("resources")
    if not resources:
        container["resources"] = {}
    elif resources.get("limits"):
        resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}


def _admit_priority(plane: ControlPlane, name: str, spec: Object) -> None:
    class_name = spec.get("priorityClassName")
    if class_name:
        entry = plane.store("priorityclasses.scheduling.k8s.io").get(("", class_name))
        if entry is None:
            why = f"no PriorityClass with name {class_name} was found"
            raise ApiError(403, "Forbidden", f'pods "{name}" is forbidden: {why}', {"name": name, "kind": "pods"})
        found: Object | None = entry.obj
    else:
        found = plane.default_priority_class()
        if found is not None:
            spec["priorityClassName"] = found["metadata"]["name"]
    priority = int(found["value"]) if found else 0
    if spec.get("priority") is not None and spec["priority"] != priority:
        why = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {priority} from the given PriorityClass name"
        )
        raise ApiError(403, "Forbidden", f'pods "{name}" is forbidden: {why}', {"name": name, "kind": "pods"})
    spec["priority"] = priority
    spec["preemptionPolicy"] = (found or {}).get("preemptionPolicy") or "PreemptLowerPriority"


def _add_tolerations(spec: Object) -> None:
    tolerations = list(spec.get("tolerations") or ())
    for default in _NODE_LOSS_TOLERATIONS:
        covered = any(
            toleration.get("key") in (None, "", default["key"]) and toleration.get("effect") in (None, "", "NoExecute")
            for toleration in tolerations
        )
        if not covered:
            tolerations.append(dict(default))
    spec["tolerations"] = tolerations
