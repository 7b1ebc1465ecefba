"""Refusals as the API server words them (metav1.Status)."""

from __future__ import annotations

from typing import Any

from airflow_elastic.embedded.types import Object

__all__ = [
    "ApiError",
    "already_exists",
    "bad_request",
    "conflict",
    "expired",
    "invalid",
    "not_found",
    "status_object",
    "unsupported",
]


class ApiError(Exception):
    """A request refused with a Status object."""

    def __init__(self, code: int, reason: str, message: str, details: Object | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details or {}

    def as_object(self) -> Object:
        """Return the Status that clients read."""
        return status_object(self.code, self.reason, self.message, self.details)


def status_object(code: int, reason: str, message: str, details: Object | None = None) -> Object:
    """Return a metav1.Status."""
    status: Object = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure" if code >= 400 else "Success",
    }
    if message:
        status["message"] = message
    if reason:
        status["reason"] = reason
    if details:
        status["details"] = details
    return {**status, "code": code}


def _qualified(plural: str, group: str) -> str:
    return f"{plural}.{group}" if group else plural


def _details(plural: str, group: str, name: str, **more: Any) -> Object:
    details: Object = {"name": name, "kind": plural, **more}
    if group:
        details["group"] = group
    return details


def not_found(plural: str, group: str, name: str) -> ApiError:
    """Return 404 for one object."""
    message = f'{_qualified(plural, group)} "{name}" not found'
    return ApiError(404, "NotFound", message, _details(plural, group, name))


def already_exists(plural: str, group: str, name: str) -> ApiError:
    """Return 409 for a name that is taken."""
    message = f'{_qualified(plural, group)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, _details(plural, group, name))


def conflict(plural: str, group: str, name: str, why: str = "") -> ApiError:
    """Return 409 for a write on an outdated version."""
    why = why or "the object has been modified; please apply your changes to the latest version and try again"
    message = f'Operation cannot be fulfilled on {_qualified(plural, group)} "{name}": {why}'
    return ApiError(409, "Conflict", message, _details(plural, group, name))


def invalid(kind: str, group: str, name: str, causes: list[tuple[str, str]]) -> ApiError:
    """Return 422; causes are (field, message)."""
    listed = [f"{field}: {message}" for field, message in causes]
    text = listed[0] if len(listed) == 1 else "[" + ", ".join(listed) + "]"
    what = f"{kind}.{group}" if group else kind
    details = _details(
        kind,
        group,
        name,
        causes=[{"reason": "FieldValueInvalid", "message": message, "field": field} for field, message in causes],
    )
    return ApiError(422, "Invalid", f'{what} "{name}" is invalid: {text}', details)


def bad_request(message: str) -> ApiError:
    """Return 400."""
    return ApiError(400, "BadRequest", message)


def expired(message: str) -> ApiError:
    """Return 410 for a resource version or continue token that is too old."""
    return ApiError(410, "Expired", message)


def unsupported(what: str, instead: str) -> ApiError:
    """Return 501 for what the embedded cluster leaves out on purpose, with what to do instead."""
    return ApiError(501, "NotImplemented", f"the embedded cluster does not do this: {what}; {instead}")
