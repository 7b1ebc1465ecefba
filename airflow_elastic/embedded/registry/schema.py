"""Types of the fields that the cluster reads: a wrong one is refused before anything stumbles over it.

Fields that are not listed are kept as they come; explicit nulls are dropped, as decoding into the API's types does.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from airflow_elastic.embedded.http.status import ApiError, invalid
from airflow_elastic.embedded.types import Object

__all__ = ["check_types"]

Schema: TypeAlias = Any
"""``str``, ``int``, ``bool``, ``float`` (a number or a quantity), a dict of fields, ``[item]``, or ``{"*": value}``.

A field whose name ends in ``!`` is required."""

_STRINGS: Schema = {"*": str}
_AMOUNTS: Schema = {"*": float}
_METADATA: Schema = {
    "name": str, "generateName": str, "namespace": str, "uid": str, "resourceVersion": str, "labels": _STRINGS,
    "annotations": _STRINGS, "finalizers": [str], "ownerReferences": [{"kind!": str, "name!": str, "uid!": str}],
}  # fmt: skip
_CONDITIONS: Schema = [{"type!": str, "status!": str, "reason": str, "message": str}]
_EXPRESSIONS: Schema = [{"key!": str, "operator!": str, "values": [str]}]
_LABEL_SELECTOR: Schema = {"matchLabels": _STRINGS, "matchExpressions": _EXPRESSIONS}
_NODE_TERM: Schema = {"matchExpressions": _EXPRESSIONS, "matchFields": _EXPRESSIONS}
_POD_TERM: Schema = {
    "labelSelector": _LABEL_SELECTOR, "topologyKey!": str, "namespaces": [str], "namespaceSelector": _LABEL_SELECTOR,
}  # fmt: skip
_POD_AFFINITY: Schema = {
    "requiredDuringSchedulingIgnoredDuringExecution": [_POD_TERM],
    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": int, "podAffinityTerm": _POD_TERM}],
}
_AFFINITY: Schema = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_NODE_TERM]},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": int, "preference": _NODE_TERM}],
    },
    "podAffinity": _POD_AFFINITY,
    "podAntiAffinity": _POD_AFFINITY,
}
_KEY_REFERENCE: Schema = {"name": str, "key!": str, "optional": bool}
_ENV: Schema = {
    "name!": str,
    "value": str,
    "valueFrom": {
        "fieldRef": {"fieldPath!": str},
        "resourceFieldRef": {"resource!": str, "divisor": float},
        "configMapKeyRef": _KEY_REFERENCE,
        "secretKeyRef": _KEY_REFERENCE,
    },
}
_SOURCE_REFERENCE: Schema = {"name": str, "optional": bool}
_CONTAINER: Schema = {
    "name": str, "image": str, "command": [str], "args": [str], "workingDir": str, "env": [_ENV],
    "envFrom": [{"prefix": str, "configMapRef": _SOURCE_REFERENCE, "secretRef": _SOURCE_REFERENCE}],
    "resources": {"requests": _AMOUNTS, "limits": _AMOUNTS}, "restartPolicy": str, "terminationMessagePath": str,
    "volumeMounts": [{"name!": str, "mountPath!": str, "subPath": str}], "imagePullPolicy": str,
    "terminationMessagePolicy": str, "livenessProbe": {}, "readinessProbe": {}, "startupProbe": {}, "lifecycle": {},
}  # fmt: skip
_POD_SPEC: Schema = {
    "containers": [_CONTAINER], "initContainers": [_CONTAINER], "nodeName": str, "nodeSelector": _STRINGS,
    "affinity": _AFFINITY, "restartPolicy": str, "schedulerName": str, "priorityClassName": str, "priority": int,
    "preemptionPolicy": str, "terminationGracePeriodSeconds": int, "activeDeadlineSeconds": int, "overhead": _AMOUNTS,
    "tolerations": [{"key": str, "operator": str, "value": str, "effect": str, "tolerationSeconds": int}],
    "schedulingGates": [{"name!": str}], "serviceAccountName": str, "topologySpreadConstraints": [{}],
    "volumes": [
        {
            "name!": str, "emptyDir": {}, "hostPath": {"path!": str}, "configMap": {"name": str},
            "secret": {"secretName": str}, "persistentVolumeClaim": {"claimName": str},
        }
    ],
}  # fmt: skip
_CONTAINER_STATUS: Schema = {"name!": str, "state": {"*": {}}, "ready": bool, "restartCount": int}
_SCHEMAS: dict[str, Schema] = {
    "pods": {
        "spec": _POD_SPEC,
        "status": {
            "phase": str, "reason": str, "message": str, "conditions": _CONDITIONS, "podIP": str, "hostIP": str,
            "nominatedNodeName": str, "containerStatuses": [_CONTAINER_STATUS],
            "initContainerStatuses": [_CONTAINER_STATUS],
        },
    },
    "nodes": {
        "spec": {"unschedulable": bool, "taints": [{"key!": str, "value": str, "effect!": str}], "providerID": str},
        "status": {
            "allocatable": _AMOUNTS, "capacity": _AMOUNTS, "conditions": _CONDITIONS,
            "addresses": [{"type!": str, "address!": str}],
        },
    },
    "events": {
        "involvedObject": {"kind": str, "name": str, "namespace": str, "uid": str}, "regarding": {"name": str},
        "reason": str, "message": str, "note": str, "type": str, "count": int, "source": {"component": str},
        "firstTimestamp": str, "lastTimestamp": str, "eventTime": str, "reportingComponent": str,
    },
    "configmaps": {"data": _STRINGS, "binaryData": _STRINGS, "immutable": bool},
    "secrets": {"data": _STRINGS, "stringData": _STRINGS, "type": str, "immutable": bool},
    "namespaces": {"spec": {}, "status": {"phase": str}},
    "resourcequotas": {
        "spec": {
            "hard": _AMOUNTS, "scopes": [str],
            "scopeSelector": {"matchExpressions": [{"scopeName!": str, "operator!": str, "values": [str]}]},
        },
        "status": {"hard": _AMOUNTS, "used": _AMOUNTS},
    },
    "leases.coordination.k8s.io": {
        "spec": {"holderIdentity": str, "leaseDurationSeconds": int, "renewTime": str, "leaseTransitions": int}
    },
    "priorityclasses.scheduling.k8s.io": {
        "value": int, "globalDefault": bool, "description": str, "preemptionPolicy": str,
    },
    "poddisruptionbudgets.policy": {
        "spec": {"minAvailable": float, "maxUnavailable": float, "selector": _LABEL_SELECTOR},
        "status": {"disruptionsAllowed": int},
    },
    "nodepools.embedded.airflow-elastic.io": {"spec": {}, "status": {}},
}  # fmt: skip
_WORDS = {str: "string", int: "int", bool: "bool", float: "quantity"}


class _MissingError(Exception):
    """A required field is absent; the message is its path."""


def check_types(kind: str, version: str, store_key: str, obj: Object) -> None:
    """Check the types of the fields that matter, and drop nulls, in place.

    Raises:
        ApiError: 400 for a wrong type, 422 for a missing field, naming the field.
    """
    try:
        _check(obj, {"metadata": _METADATA, **_SCHEMAS.get(store_key, {})}, "")
    except _MissingError as error:
        raise invalid(kind, "", str(obj["metadata"].get("name", ""))[:80], [(str(error), "Required value")]) from None
    except TypeError as error:
        message = f'{kind} in version "{version}" cannot be handled as a {kind}: json: cannot unmarshal {error}'
        raise ApiError(400, "BadRequest", message) from None


def _check(value: Any, schema: Schema, path: str) -> None:
    if isinstance(schema, dict):
        if not isinstance(value, dict):
            raise _mismatch(value, path, "object")
        _check_fields(value, schema, path)
    elif isinstance(schema, list):
        if not isinstance(value, list):
            raise _mismatch(value, path, "list")
        for item in value:
            _check(item, schema[0], path)
    elif schema is float:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise _mismatch(value, path, _WORDS[float])
    elif not isinstance(value, schema) or (schema is int and isinstance(value, bool)):
        raise _mismatch(value, path, _WORDS[schema])


def _check_fields(value: Object, schema: dict[str, Schema], path: str) -> None:
    every = schema.get("*")
    if every is not None:
        for key in [key for key, item in value.items() if item is None]:
            del value[key]
        for key, item in value.items():
            _check(item, every, f"{path}.{key}")
        return
    for name, expected in schema.items():
        field = name.removesuffix("!")
        where = f"{path}.{field}" if path else field
        if value.get(field) is not None:
            _check(value[field], expected, where)
            continue
        value.pop(field, None)
        if field != name:
            raise _MissingError(where)


def _mismatch(value: Any, path: str, wanted: str) -> TypeError:
    found = {dict: "object", list: "array", str: "string", bool: "bool"}.get(type(value), "number")
    return TypeError(f"{found} into field {path or '.'} of type {wanted}")
