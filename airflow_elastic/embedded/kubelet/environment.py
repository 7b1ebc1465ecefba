"""A container's command line and environment, with every kind of reference resolved."""

from __future__ import annotations

import base64
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_elastic.embedded.kubelet.mounts import PodDirectory
from airflow_elastic.embedded.registry.requests import quantity
from airflow_elastic.embedded.types import Object

if TYPE_CHECKING:
    from airflow_elastic.embedded.plane import ControlPlane

__all__ = ["MissingReference", "command_line", "environment"]

_REFERENCE = re.compile(r"\$(?:(\$)|\(([A-Za-z_][A-Za-z0-9_.-]*)\))")


class MissingReference(Exception):
    """An env entry names a ConfigMap, Secret or key that does not exist."""


def environment(plane: ControlPlane, pod: Object, container: Object, directory: PodDirectory) -> dict[str, str]:
    """Return the environment of a container's process.

    Raises:
        MissingReference: a reference that is not optional leads nowhere.
    """
    search = [str(Path(sys.executable).parent), os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin")]
    values = {
        "PATH": os.pathsep.join(search),
        "HOME": str(directory.home(container)),
        "HOSTNAME": pod["metadata"]["name"],
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        "PYTHONUNBUFFERED": "1",
        "AIRFLOW_ELASTIC_XCOM_DIR": str(directory.xcom),
        "AIRFLOW_ELASTIC_TERMINATION_LOG": str(directory.termination_file(container)),
    }
    for source in container.get("envFrom") or ():
        prefix = source.get("prefix") or ""
        for key, value in _all_of(plane, pod, source).items():
            values[prefix + key] = value
    for entry in container.get("env") or ():
        given = entry.get("value")
        if given is None:
            given = _value_from(plane, pod, container, entry.get("valueFrom") or {})
        if given is not None:
            values[entry["name"]] = directory.rewrite(container, _expand(str(given), values))
    return values


def command_line(container: Object, values: dict[str, str], directory: PodDirectory) -> list[str]:
    """Return command and arguments with ``$(VAR)`` expanded and mount points rewritten."""
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    return [directory.rewrite(container, _expand(str(word), values)) for word in words]


def _expand(text: str, values: dict[str, str]) -> str:
    """Replace ``$(VAR)``; ``$$`` is one ``$``, so ``$$(VAR)`` no reference, and unknown names stay as they are."""

    def replaced(match: re.Match[str]) -> str:
        if match.group(1):
            return "$"
        return values.get(match.group(2), match.group(0))

    return _REFERENCE.sub(replaced, text)


def _all_of(plane: ControlPlane, pod: Object, source: Object) -> dict[str, str]:
    for kind, store in (("configMapRef", "configmaps"), ("secretRef", "secrets")):
        if source.get(kind):
            return _data(plane, pod, store, source[kind])
    return {}


def _data(plane: ControlPlane, pod: Object, store: str, reference: Object) -> dict[str, str]:
    entry = plane.store(store).get((pod["metadata"]["namespace"], reference.get("name", "")))
    if entry is None:
        if reference.get("optional"):
            return {}
        raise MissingReference(f'{store[:-1]} "{reference.get("name")}" not found')
    data: dict[str, Any] = entry.obj.get("data") or {}
    if store == "secrets":
        return {key: base64.b64decode(value).decode("utf-8", "replace") for key, value in data.items()}
    return {key: str(value) for key, value in data.items()}


def _value_from(plane: ControlPlane, pod: Object, container: Object, source: Object) -> str | None:
    if source.get("fieldRef"):
        return _field(pod, source["fieldRef"]["fieldPath"])
    if source.get("resourceFieldRef"):
        return _resource(container, source["resourceFieldRef"])
    for kind, store in (("configMapKeyRef", "configmaps"), ("secretKeyRef", "secrets")):
        reference = source.get(kind)
        if reference:
            data = _data(plane, pod, store, reference)
            if reference["key"] not in data:
                if reference.get("optional"):
                    return None
                raise MissingReference(f"couldn't find key {reference['key']} in {store[:-1]} {reference.get('name')}")
            return data[reference["key"]]
    return None


def _field(pod: Object, path: str) -> str:
    keyed = re.fullmatch(r"metadata\.(labels|annotations)\['([^']+)'\]", path)
    if keyed:
        return str((pod["metadata"].get(keyed.group(1)) or {}).get(keyed.group(2), ""))
    value: Any = pod
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return "" if value is None else str(value)


def _resource(container: Object, reference: Object) -> str:
    kind, _, name = reference["resource"].partition(".")
    resources = container.get("resources") or {}
    text = (resources.get(kind) or {}).get(name, "0")
    amount = quantity(text, name)
    divisor = max(1, quantity(reference.get("divisor") or "1", name))
    return str(-(-amount // divisor))
