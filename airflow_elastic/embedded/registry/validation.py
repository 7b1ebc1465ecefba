"""Names, labels and pod specs: what the API server refuses with 422."""

from __future__ import annotations

import re
from typing import Any

from airflow_elastic.embedded.http.status import ApiError, invalid
from airflow_elastic.embedded.registry.requests import amounts_of
from airflow_elastic.embedded.types import Object

__all__ = ["check_metadata", "check_pod_spec", "check_pod_update"]

_SUBDOMAIN = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
_DNS_LABEL = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
_LABEL_VALUE = re.compile(r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$")
_LABEL_KEY = re.compile(r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_REQUIRED = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
_MAX_ANNOTATIONS = 256 * 1024


def check_metadata(kind: str, group: str, metadata: Object) -> None:
    """Check name, labels and annotations of any object.

    Raises:
        ApiError: 422 with every mistake found.
    """
    name = metadata.get("name", "")
    causes: list[tuple[str, str]] = []
    if not name:
        causes.append(("metadata.name", "Required value: name or generateName is required"))
    elif not isinstance(name, str) or len(name) > 253 or not _SUBDOMAIN.match(name):
        causes.append(("metadata.name", f'Invalid value: "{str(name)[:80]}": {_SUBDOMAIN_RULE}'))
    for key, value in (metadata.get("labels") or {}).items():
        if not _LABEL_KEY.match(key):
            causes.append(("metadata.labels", f'Invalid value: "{key[:80]}": not a qualified name'))
        if not isinstance(value, str) or len(value) > 63 or not _LABEL_VALUE.match(value):
            rule = "a valid label must be at most 63 alphanumeric characters, '-', '_' or '.'"
            causes.append(("metadata.labels", f'Invalid value: "{str(value)[:80]}": {rule}'))
    annotations = metadata.get("annotations") or {}
    if any(not isinstance(value, str) for value in annotations.values()):
        raise ApiError(400, "BadRequest", f"{kind} in version v1 cannot be handled: annotation values must be strings")
    if sum(len(key) + len(value) for key, value in annotations.items()) > _MAX_ANNOTATIONS:
        causes.append(("metadata.annotations", f"Too long: may not be more than {_MAX_ANNOTATIONS} bytes"))
    if causes:
        raise invalid(kind, group, str(name)[:80], causes)


def check_pod_spec(name: str, spec: Object) -> None:
    """Check a new pod's spec.

    Raises:
        ApiError: 422 with every mistake found.
    """
    causes: list[tuple[str, str]] = []
    containers = spec.get("containers")
    if not isinstance(containers, list) or not containers:
        raise invalid("Pod", "", name, [("spec.containers", "Required value")])
    seen: set[str] = set()
    for part in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(part) or ()):
            _check_container(f"spec.{part}[{index}]", container, seen, causes)
    _check_placement(spec, causes)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and deadline < 1:
        causes.append(("spec.activeDeadlineSeconds", f"Invalid value: {deadline}: must be between 1 and 2147483647"))
    if spec.get("restartPolicy") not in ("Always", "OnFailure", "Never"):
        supported = 'supported values: "Always", "OnFailure", "Never"'
        causes.append(("spec.restartPolicy", f'Unsupported value: "{spec.get("restartPolicy")}": {supported}'))
    volumes = {volume.get("name") for volume in spec.get("volumes") or ()}
    for part in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(part) or ()):
            for place, mount in enumerate(container.get("volumeMounts") or ()):
                if mount.get("name") not in volumes:
                    field = f"spec.{part}[{index}].volumeMounts[{place}].name"
                    causes.append((field, f'Not found: "{mount.get("name")}"'))
    if causes:
        raise invalid("Pod", "", name, causes)


def _check_placement(spec: Object, causes: list[tuple[str, str]]) -> None:
    for key, value in (spec.get("nodeSelector") or {}).items():
        if not _LABEL_KEY.match(key) or len(value) > 63 or not _LABEL_VALUE.match(value):
            rule = "a valid label must be at most 63 alphanumeric characters, '-', '_' or '.'"
            causes.append(("spec.nodeSelector", f'Invalid value: "{value[:80]}": {rule}'))
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        _check_toleration(f"spec.tolerations[{index}]", toleration, causes)
    names = [gate["name"] for gate in spec.get("schedulingGates") or ()]
    causes.extend(
        (f"spec.schedulingGates[{index}]", f'Duplicate value: "{name}"')
        for index, name in enumerate(names)
        if name in names[:index]
    )
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    for place, term in enumerate(required.get("nodeSelectorTerms") or ()):
        for index, expression in enumerate(term.get("matchExpressions") or ()):
            field = f"{_REQUIRED}.nodeSelectorTerms[{place}].matchExpressions[{index}]"
            _check_expression(field, expression, causes)


def _check_toleration(field: str, toleration: Object, causes: list[tuple[str, str]]) -> None:
    operator, effect = toleration.get("operator") or "Equal", toleration.get("effect") or ""
    if operator not in ("Equal", "Exists"):
        causes.append((f"{field}.operator", f'Unsupported value: "{operator}": supported values: "Equal", "Exists"'))
    elif operator == "Exists" and toleration.get("value"):
        rule = "value must be empty when `operator` is 'Exists'"
        causes.append((f"{field}.operator", f'Invalid value: "{toleration["value"]}": {rule}'))
    elif operator == "Equal" and not toleration.get("key"):
        rule = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        causes.append((f"{field}.operator", f'Invalid value: "{operator}": {rule}'))
    if effect not in ("", "NoSchedule", "PreferNoSchedule", "NoExecute"):
        supported = 'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'
        causes.append((f"{field}.effect", f'Unsupported value: "{effect}": {supported}'))
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        rule = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        causes.append((f"{field}.effect", f'Invalid value: "{effect}": {rule}'))


def _check_expression(field: str, expression: Object, causes: list[tuple[str, str]]) -> None:
    operator, values = expression["operator"], expression.get("values") or ()
    if operator in ("In", "NotIn"):
        if not values:
            rule = "Required value: must be specified when `operator` is 'In' or 'NotIn'"
            causes.append((f"{field}.values", rule))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            rule = "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            causes.append((f"{field}.values", rule))
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            rule = "Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"
            causes.append((f"{field}.values", rule))
    else:
        causes.append((f"{field}.operator", f'Invalid value: "{operator}": not a valid selector operator'))


def _check_container(field: str, container: Any, seen: set[str], causes: list[tuple[str, str]]) -> None:
    if not isinstance(container, dict):
        causes.append((field, "Invalid value: must be an object"))
        return
    name = container.get("name") or ""
    if not name:
        causes.append((f"{field}.name", "Required value"))
    elif len(name) > 63 or not _DNS_LABEL.match(name):
        causes.append((f"{field}.name", f'Invalid value: "{name[:80]}": a lowercase RFC 1123 label is required'))
    elif name in seen:
        causes.append((f"{field}.name", f'Duplicate value: "{name}"'))
    seen.add(name)
    if not container.get("image"):
        causes.append((f"{field}.image", "Required value"))
    resources = container.get("resources") or {}
    amounts: dict[str, dict[str, int]] = {}
    for kind in ("requests", "limits"):
        try:
            amounts[kind] = amounts_of(resources.get(kind))
        except ValueError as error:
            causes.append((f"{field}.resources.{kind}", f"Invalid value: {error}"))
    for resource, limit in amounts.get("limits", {}).items():
        if amounts.get("requests", {}).get(resource, 0) > limit:
            asked = (resources.get("requests") or {}).get(resource)
            rule = f"must be less than or equal to {resource} limit of {resources['limits'][resource]}"
            causes.append((f"{field}.resources.requests", f'Invalid value: "{asked}": {rule}'))


def check_pod_update(name: str, new: Object, old: Object) -> None:
    """Check that only the fields that may change have changed.

    Raises:
        ApiError: 422 as the API server answers.
    """
    gated = bool(old.get("schedulingGates"))
    if _frozen_part(new, gated) != _frozen_part(old, gated):
        rule = (
            "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
            "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
            "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
            "(allow it to be set to 1 if it was previously negative)"
        )
        raise invalid("Pod", "", name, [("spec", rule)])
    gates = [gate["name"] for gate in old.get("schedulingGates") or ()]
    added = [gate["name"] for gate in new.get("schedulingGates") or () if gate["name"] not in gates]
    if added:
        rule = f'Forbidden: only deletion is allowed, but found new scheduling gate "{added[0]}"'
        raise invalid("Pod", "", name, [("spec.schedulingGates", rule)])
    _check_deadline_update(name, new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds"))
    kept = new.get("tolerations") or []
    if any(toleration not in kept for toleration in old.get("tolerations") or ()):
        raise invalid("Pod", "", name, [("spec.tolerations", "Forbidden: existing toleration can not be modified")])


def _check_deadline_update(name: str, new: int | None, old: int | None) -> None:
    if old is None or new == old:
        return
    field = "spec.activeDeadlineSeconds"
    if new is None:
        raise invalid(
            "Pod", "", name, [(field, "Invalid value: null: must not update from a positive integer to nil value")]
        )
    if new > old:
        raise invalid("Pod", "", name, [(field, f"Invalid value: {new}: must be less than or equal to previous value")])


def _frozen_part(spec: Object, gated: bool) -> Object:
    free = {"activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates", "priority"}
    # A gated pod may still be moved: its node selection can be narrowed until the gate goes.
    free |= {"nodeSelector", "affinity"} if gated else set()
    frozen: Object = {key: value for key, value in spec.items() if key not in free and value not in (None, [], {})}
    for part in ("containers", "initContainers"):
        if part in frozen:
            frozen[part] = [{k: v for k, v in c.items() if k not in ("image", "resources")} for c in frozen[part]]
    return frozen
