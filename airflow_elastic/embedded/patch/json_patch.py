"""JSON patch (RFC 6902)."""

from __future__ import annotations

import copy
from typing import Any

from airflow_elastic.embedded.http.status import ApiError, bad_request

__all__ = ["json_patch"]


def json_patch(target: Any, operations: Any) -> Any:
    """Apply operations to the target, in place where it can be; returns the result.

    Raises:
        ApiError: 400 for a malformed patch, 422 for one that cannot be applied (a failed test, a missing path).
    """
    if not isinstance(operations, list):
        raise bad_request("a JSON patch must be a list of operations")
    for operation in operations:
        if not isinstance(operation, dict) or not isinstance(operation.get("path"), str):
            raise bad_request("each operation of a JSON patch needs op and path")
        target = _apply(target, operation)
    return target


def _refused(message: str) -> ApiError:
    return ApiError(422, "Invalid", f"the server rejected our request due to an error in our request: {message}")


def _apply(target: Any, operation: dict[str, Any]) -> Any:
    kind, path = operation.get("op"), _split(operation["path"])
    if kind == "test":
        if _value_or_none(target, path) != operation.get("value"):
            raise _refused(f"testing path {operation['path']} failed")
        return target
    if kind == "remove":
        return _remove(target, path)
    if kind in ("add", "replace"):
        if "value" not in operation:
            raise bad_request(f"operation {kind} needs a value")
        # The RFC wants a failure where a replaced member is not there; the API server takes it as an addition.
        return _put(target, path, operation["value"], insert=kind == "add")
    if kind in ("move", "copy"):
        source = _split(operation.get("from") or "")
        value = copy.deepcopy(_get(target, source))
        if kind == "move":
            target = _remove(target, source)
        return _put(target, path, value, insert=True)
    raise bad_request(f"unexpected kind: {kind}")


def _split(path: str) -> list[str]:
    if path == "":
        return []
    if not path.startswith("/"):
        raise bad_request(f"{path!r} is not a JSON pointer; it starts with /")
    return [part.replace("~1", "/").replace("~0", "~") for part in path[1:].split("/")]


def _index(array: list[Any], part: str, *, end: int) -> int:
    if not part.isdigit() or int(part) > end:
        raise _refused(f"invalid array index {part!r}")
    return int(part)


def _get(target: Any, path: list[str]) -> Any:
    for part in path:
        if isinstance(target, dict) and part in target:
            target = target[part]
        elif isinstance(target, list):
            target = target[_index(target, part, end=len(target) - 1)]
        else:
            raise _refused(f"missing path /{'/'.join(path)}")
    return target


def _value_or_none(target: Any, path: list[str]) -> Any:
    """Return a value to be tested: a member that is not there is as good as null."""
    parent = _get(target, path[:-1])
    return parent.get(path[-1]) if path and isinstance(parent, dict) else _get(target, path)


def _remove(target: Any, path: list[str]) -> Any:
    if not path:
        return None
    parent, last = _get(target, path[:-1]), path[-1]
    if isinstance(parent, list):
        del parent[_index(parent, last, end=len(parent) - 1)]
    elif isinstance(parent, dict) and last in parent:
        del parent[last]
    else:
        raise _refused(f"missing path /{'/'.join(path)}")
    return target


def _put(target: Any, path: list[str], value: Any, *, insert: bool) -> Any:
    if not path:
        return value
    parent, last = _get(target, path[:-1]), path[-1]
    if isinstance(parent, dict):
        parent[last] = value
    elif isinstance(parent, list):
        if last == "-":
            parent.append(value)
        elif insert:
            parent.insert(_index(parent, last, end=len(parent)), value)
        else:
            parent[_index(parent, last, end=len(parent) - 1)] = value
    else:
        raise _refused(f"missing path /{'/'.join(path)}")
    return target
