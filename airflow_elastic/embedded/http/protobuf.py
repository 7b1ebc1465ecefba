"""Decodes the few kinds that kubectl creates as protobuf (``kubectl create namespace``, ``auth can-i`` …).

Everything else in protobuf is refused with 415, and every answer is JSON. Field numbers are those of the published
Kubernetes API definitions.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from airflow_elastic.embedded.http.status import bad_request
from airflow_elastic.embedded.types import Object

__all__ = ["PROTOBUF", "decode", "knows"]

PROTOBUF = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"


@dataclass(frozen=True, slots=True)
class _Field:
    """A field: its JSON name, its type (a scalar or the name of a message), and whether it repeats or is a map."""

    name: str
    type: str = "string"
    shape: str = "one"


def _map(name: str, type_: str = "string") -> _Field:
    return _Field(name, type_, "map")


def _list(name: str, type_: str = "string") -> _Field:
    return _Field(name, type_, "list")


_META = _Field("metadata", "ObjectMeta")
_MESSAGES: dict[str, dict[int, _Field]] = {
    "TypeMeta": {1: _Field("apiVersion"), 2: _Field("kind")},
    "Unknown": {1: _Field("typeMeta", "TypeMeta"), 2: _Field("raw", "raw")},
    "ObjectMeta": {
        1: _Field("name"), 2: _Field("generateName"), 3: _Field("namespace"), 11: _map("labels"),
        12: _map("annotations"), 13: _list("ownerReferences", "OwnerReference"), 14: _list("finalizers"),
    },
    "OwnerReference": {
        1: _Field("kind"), 3: _Field("name"), 4: _Field("uid"), 5: _Field("apiVersion"),
        6: _Field("controller", "bool"), 7: _Field("blockOwnerDeletion", "bool"),
    },
    "LabelSelector": {1: _map("matchLabels"), 2: _list("matchExpressions", "Expression")},
    "Expression": {1: _Field("key"), 2: _Field("operator"), 3: _list("values")},
    "Namespace": {1: _META},
    "ServiceAccount": {1: _META},
    "SelfSubjectReview": {1: _META},
    "ConfigMap": {1: _META, 2: _map("data"), 3: _map("binaryData", "bytes"), 4: _Field("immutable", "bool")},
    "Secret": {
        1: _META, 2: _map("data", "bytes"), 3: _Field("type"), 4: _map("stringData"), 5: _Field("immutable", "bool"),
    },
    "ResourceQuota": {1: _META, 2: _Field("spec", "ResourceQuotaSpec")},
    "ResourceQuotaSpec": {1: _map("hard", "Quantity"), 2: _list("scopes")},
    "PriorityClass": {
        1: _META, 2: _Field("value", "int"), 3: _Field("globalDefault", "bool"), 4: _Field("description"),
        5: _Field("preemptionPolicy"),
    },
    "PodDisruptionBudget": {1: _META, 2: _Field("spec", "PodDisruptionBudgetSpec")},
    "PodDisruptionBudgetSpec": {
        1: _Field("minAvailable", "IntOrString"), 2: _Field("selector", "LabelSelector"),
        3: _Field("maxUnavailable", "IntOrString"),
    },
    "SelfSubjectAccessReview": {1: _META, 2: _Field("spec", "AccessSpec")},
    "AccessSpec": {1: _Field("resourceAttributes", "ResourceAttributes"), 2: _Field("nonResourceAttributes", "Path")},
    "ResourceAttributes": {
        1: _Field("namespace"), 2: _Field("verb"), 3: _Field("group"), 4: _Field("version"), 5: _Field("resource"),
        6: _Field("subresource"), 7: _Field("name"),
    },
    "Path": {1: _Field("path"), 2: _Field("verb")},
    "Eviction": {1: _META, 2: _Field("deleteOptions", "DeleteOptions")},
    "DeleteOptions": {
        1: _Field("gracePeriodSeconds", "int"), 2: _Field("preconditions", "Preconditions"),
        4: _Field("propagationPolicy"), 5: _list("dryRun"),
    },
    "Preconditions": {1: _Field("uid"), 2: _Field("resourceVersion")},
    "Quantity": {1: _Field("string")},
    "IntOrString": {1: _Field("type", "int"), 2: _Field("intVal", "int"), 3: _Field("strVal")},
}  # fmt: skip
_KINDS = frozenset(
    {
        "ConfigMap", "DeleteOptions", "Eviction", "Namespace", "PodDisruptionBudget", "PriorityClass", "ResourceQuota",
        "Secret", "SelfSubjectAccessReview", "SelfSubjectReview", "ServiceAccount",
    }
)  # fmt: skip


def knows(kind: str) -> bool:
    """Tell whether a kind can be decoded."""
    return kind in _KINDS


def decode(body: bytes) -> Object | None:
    """Return the object in a protobuf body; None if it is of a kind that is not decoded.

    Raises:
        ApiError: 400, the bytes are not what they say.
    """
    if not body.startswith(_MAGIC):
        raise bad_request("the body is not Kubernetes protobuf: it does not start with k8s")
    try:
        envelope = _message("Unknown", body[len(_MAGIC) :])
        kind = envelope.get("typeMeta", {}).get("kind", "")
        if not knows(kind):
            return None
        decoded: Object = _message(kind, envelope.get("raw", b""))
    except (ValueError, IndexError, UnicodeDecodeError) as error:
        raise bad_request(f"error decoding protobuf: {error}") from None
    return {**envelope["typeMeta"], **decoded}


def _message(name: str, data: bytes) -> Any:
    fields = _MESSAGES[name]
    result: Object = {}
    for number, value in _parts(data):
        field = fields.get(number)
        if field is None:
            continue
        if field.shape == "map":
            entry = dict(_parts(_as_bytes(value)))
            key = _as_bytes(entry.get(1, b"")).decode()
            result.setdefault(field.name, {})[key] = _value(field.type, entry.get(2, b""))
        elif field.shape == "list":
            result.setdefault(field.name, []).append(_value(field.type, value))
        else:
            result[field.name] = _value(field.type, value)
    if name == "Quantity":
        return result.get("string", "0")
    if name == "IntOrString":
        return result.get("strVal", "") if result.get("type") == 1 else result.get("intVal", 0)
    return result


def _value(type_: str, value: int | bytes) -> Any:
    if type_ == "int":
        number = int(value)
        return number - 2**64 if number >= 2**63 else number
    if type_ == "bool":
        return bool(value)
    data = _as_bytes(value)
    if type_ == "string":
        return data.decode()
    if type_ == "bytes":
        return base64.b64encode(data).decode()
    return data if type_ == "raw" else _message(type_, data)


def _as_bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where bytes were expected")
    return value


def _parts(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield (field number, value) of a message: numbers, or bytes of strings and messages."""
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, place = _varint(data, place)
            yield number, value
        elif wire == 2:
            length, place = _varint(data, place)
            if place + length > len(data):
                raise ValueError("a field is longer than its message")
            yield number, data[place : place + length]
            place += length
        elif wire in (1, 5):
            place += 8 if wire == 1 else 4
        else:
            raise ValueError(f"wire type {wire}")


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
        shift += 7
        if shift > 63:
            raise ValueError("a number is too long")
