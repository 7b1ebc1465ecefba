"""Three of the four patch types: JSON patch, merge patch, strategic merge patch. Server-side apply is refused."""

from __future__ import annotations

import json
from typing import Any

from airflow_elastic.embedded.http.status import ApiError, bad_request, unsupported
from airflow_elastic.embedded.patch.json_patch import json_patch
from airflow_elastic.embedded.patch.merge import merge_patch
from airflow_elastic.embedded.patch.strategic import strategic_patch
from airflow_elastic.embedded.types import Object

__all__ = ["JSON_PATCH", "MERGE_PATCH", "SERVER_SIDE_APPLY", "STRATEGIC_PATCH", "apply_patch", "decode_patch"]

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
SERVER_SIDE_APPLY = "application/apply-patch+yaml"


def decode_patch(content_type: str, body: bytes) -> Any:
    """Decode the body of a PATCH request.

    Raises:
        ApiError: not JSON; 501 for server-side apply.
    """
    if content_type == SERVER_SIDE_APPLY:
        # Taken as a merge it would be wrong in silence: nobody would own fields, and nothing left out would go.
        raise unsupported("server-side apply", "send a merge patch, or kubectl apply without --server-side")
    try:
        return json.loads(body)
    except ValueError as error:
        raise bad_request(f"error decoding patch: {error}") from None


def apply_patch(content_type: str, target: Object, patch: Any, *, builtin: bool) -> Object:
    """Apply a decoded patch to a copy that may be changed; returns the result.

    Raises:
        ApiError: 415 for a patch type that the resource does not take, 400 or 422 for a patch that cannot be applied.
    """
    if content_type == JSON_PATCH:
        result = json_patch(target, patch)
        if not isinstance(result, dict):
            raise bad_request("the patch does not leave an object")
        return result
    if not isinstance(patch, dict):
        raise bad_request("the patch must be a JSON object")
    if content_type == MERGE_PATCH:
        return merge_patch(target, patch)
    if content_type == STRATEGIC_PATCH and builtin:
        return strategic_patch(target, patch)
    accepted = [JSON_PATCH, MERGE_PATCH, *([STRATEGIC_PATCH] if builtin else [])]
    raise ApiError(
        415,
        "UnsupportedMediaType",
        f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}",
    )
