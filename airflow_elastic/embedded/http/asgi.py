"""The ASGI application: finds the handler, answers, words refusals."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from airflow_elastic.embedded.http import discovery, reading, subresources, writing
from airflow_elastic.embedded.http.exec import serve_exec
from airflow_elastic.embedded.http.request import Receive, Request, Scope, Send
from airflow_elastic.embedded.http.status import ApiError, not_found
from airflow_elastic.embedded.http.target import Target, find_target
from airflow_elastic.embedded.store.entry import encode

if TYPE_CHECKING:
    from airflow_elastic.embedded.plane import ControlPlane

__all__ = ["Application"]

_log = logging.getLogger(__name__)
_JSON = (b"content-type", b"application/json")


class Application:
    """Serves one control plane."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection's request."""
        if scope["type"] == "websocket":
            await serve_exec(self._plane, scope, receive, send)
            return
        if scope["type"] != "http":
            return
        request = Request(scope, receive, send)
        try:
            answer = await self._answer(request)
        except ApiError as error:
            answer = error.code, encode(error.as_object())
        except Exception as error:
            _log.exception("the embedded cluster failed to answer %s %s", request.method, scope["path"])
            failure = ApiError(500, "InternalError", f"Internal error occurred: {type(error).__name__}: {error}")
            answer = 500, encode(failure.as_object())
        if answer is not None:
            await respond(send, *answer)

    async def _answer(self, request: Request) -> tuple[int, bytes] | None:
        parts = request.parts
        if not parts or parts[0] not in ("api", "apis") or len(parts) < (3 if parts[0] == "api" else 4):
            return await discovery.answer(self._plane, request)
        target = find_target(parts)
        if target is None:
            raise ApiError(404, "NotFound", "the server could not find the requested resource", {})
        if request.method in ("POST", "PUT", "PATCH", "DELETE"):
            await request.read()
        if target.subresource:
            return await subresources.answer(self._plane, request, target)
        return await self._resource(request, target)

    async def _resource(self, request: Request, target: Target) -> tuple[int, bytes] | None:
        method = request.method
        if method == "GET" or method == "HEAD":
            if "list" not in target.resource.verbs:
                raise _not_allowed()
            if target.name:
                return reading.get(self._plane, request, target)
            return await reading.list_or_watch(self._plane, request, target)
        if method == "POST" and not target.name:
            return writing.create(self._plane, request, target)
        if method == "PUT" and target.name:
            return writing.replace(self._plane, request, target)
        if method == "PATCH" and target.name:
            return writing.patch(self._plane, request, target)
        if method == "DELETE":
            return writing.delete(self._plane, request, target)
        raise _not_allowed()


def _not_allowed() -> ApiError:
    return ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


async def respond(send: Send, code: int, body: bytes, content_type: bytes = b"application/json") -> None:
    """Send a whole response."""
    headers = [
        _JSON if content_type == b"application/json" else (b"content-type", content_type),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": code, "headers": headers})
    await send({"type": "http.response.body", "body": body})


__all__ += ["not_found", "respond"]
