"""Strategic merge patch: as merge patch, but known lists merge element by element."""

from __future__ import annotations

from typing import Any

from airflow_elastic.embedded.http.status import bad_request
from airflow_elastic.embedded.types import Object

__all__ = ["strategic_patch"]

# The keys by which the API's own types merge lists; every other list is replaced as a whole. Keyed by field name, since
# within the resources served here a field name means the same list everywhere.
_MERGE_KEYS: dict[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "imagePullSecrets": ("name",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey",),
    "schedulingGates": ("name",),
    "resourceClaims": ("name",),
    "conditions": ("type",),
    "addresses": ("type",),
    "ownerReferences": ("uid",),
    "ports": ("containerPort", "port"),
    "podIPs": ("ip",),
    "hostIPs": ("ip",),
    "secrets": ("name",),
}
# Lists of plain values that merge as sets.
_SETS = frozenset({"finalizers"})


def strategic_patch(target: Object, patch: Object) -> Object:
    """Merge a patch into the target, in place.

    Raises:
        ApiError: a directive that does not exist, or a list element without its merge key.
    """
    directive = patch.get("$patch")
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise bad_request(f"unknown $patch directive {directive!r}: write merge, replace or delete")
    retained = patch.get("$retainKeys")
    if retained is not None:
        for key in [key for key in target if key not in retained]:
            del target[key]
    for key, value in patch.items():
        if key.startswith("$"):
            _list_directive(target, key, value)
        elif value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            present = target.get(key)
            target[key] = strategic_patch(present if isinstance(present, dict) else {}, value)
        elif isinstance(value, list):
            target[key] = _merge_list(key, target.get(key) or [], value)
        else:
            target[key] = value
    return target


def _list_directive(target: Object, key: str, value: Any) -> None:
    """Handle ``$deleteFromPrimitiveList/x`` and ``$setElementOrder/x`` (order is kept as merged)."""
    name, _, field = key.partition("/")
    if name == "$deleteFromPrimitiveList":
        target[field] = [item for item in target.get(field) or () if item not in value]
    elif name not in ("$patch", "$retainKeys", "$setElementOrder"):
        raise bad_request(f"unknown directive {key!r} in strategic merge patch")


def _merge_list(field: str, present: list[Any], patch: list[Any]) -> list[Any]:
    if field in _SETS:
        return [*present, *(item for item in patch if item not in present)]
    keys = _MERGE_KEYS.get(field)
    plain = [item for item in patch if not (isinstance(item, dict) and "$patch" in item and len(item) == 1)]
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return plain
    if keys is None or not all(isinstance(item, dict) for item in patch):
        return plain
    key = next((name for name in keys if any(name in item for item in patch)), keys[0])
    merged = list(present)
    for item in plain:
        if key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {key}")
        place = next((i for i, old in enumerate(merged) if _same(field, key, old, item)), None)
        if item.get("$patch") == "delete":
            merged = [old for old in merged if not _same(field, key, old, item)]
        elif place is None:
            merged.append(strategic_patch({}, item))
        else:
            merged[place] = strategic_patch(merged[place], item)
    return merged


def _same(field: str, key: str, old: Object, new: Object) -> bool:
    return bool(old.get(key) == new[key])
