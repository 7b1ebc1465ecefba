"""One HTTP request, decoded as far as every handler needs it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

from airflow_elastic.embedded.http import protobuf
from airflow_elastic.embedded.http.status import ApiError, bad_request
from airflow_elastic.embedded.types import Object

__all__ = ["Receive", "Request", "Scope", "Send"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_TRUE = frozenset({"true", "1", "t", "yes"})
_MAX_BODY = 3 * 1024 * 1024


class Request:
    """Method, path, query and body of a request."""

    __slots__ = ("_headers", "body", "method", "parts", "query", "receive", "send")

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.method: str = scope.get("method", "GET")
        self.parts: list[str] = [part for part in scope["path"].split("/") if part]
        raw = scope.get("query_string") or b""
        self.query: dict[str, str] = dict(parse_qsl(raw.decode("latin-1"), keep_blank_values=True)) if raw else {}
        self._headers: list[tuple[bytes, bytes]] = scope["headers"]
        self.receive = receive
        self.send = send
        self.body = b""

    def header(self, name: bytes) -> str:
        """Return a header's value, "" where it is absent; the name is given in lower case."""
        for key, value in self._headers:
            if key == name:
                return value.decode("latin-1")
        return ""

    def flag(self, name: str) -> bool:
        """Return a boolean query parameter (Python clients send ``True``)."""
        return self.query.get(name, "").lower() in _TRUE

    def number(self, name: str) -> int | None:
        """Return a whole-number query parameter.

        Raises:
            ApiError: 400 if it is not a number.
        """
        text = self.query.get(name)
        if not text:
            return None
        try:
            return int(float(text))
        except (ValueError, OverflowError):
            raise bad_request(f"query parameter {name}: {text!r} is not a number") from None

    @property
    def dry_run(self) -> bool:
        """Tell whether the write is only to be tried."""
        value = self.query.get("dryRun")
        if value not in (None, "", "All"):
            raise bad_request(f"dryRun {value!r} is not supported; the only value is All")
        return value == "All"

    async def read(self) -> None:
        """Receive the whole body.

        Raises:
            ApiError: 413 for a body larger than an API server takes.
        """
        message = await self.receive()
        chunks = [message.get("body", b"")]
        size = len(chunks[0])
        while message.get("more_body"):
            message = await self.receive()
            size += len(message.get("body", b""))
            # Read to the end all the same: a client in the middle of sending would not see the refusal.
            if size <= _MAX_BODY:
                chunks.append(message.get("body", b""))
        if size > _MAX_BODY:
            raise ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {_MAX_BODY}")
        self.body = chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def object(self) -> Object:
        """Decode a JSON (or YAML) body.

        Raises:
            ApiError: 415 for unknown types (and for protobuf of most kinds), 400 for what does not decode to an object.
        """
        kind = self.header(b"content-type").partition(";")[0].strip()
        if not self.body:
            return {}
        value: Any
        if kind == protobuf.PROTOBUF:
            value = protobuf.decode(self.body)
            if value is None:
                raise _unknown_format()
        elif kind in ("application/yaml", "application/x-yaml"):
            import yaml

            try:
                value = yaml.safe_load(self.body)
            except yaml.YAMLError as error:
                raise bad_request(f"error decoding YAML: {error}") from None
        elif kind in ("", "application/json", "*/*"):
            try:
                value = json.loads(self.body)
            except ValueError as error:
                raise bad_request(f"error decoding JSON: {error}") from None
        else:
            raise _unknown_format()
        if not isinstance(value, dict):
            raise bad_request("the body of the request must be an object")
        return value


def _unknown_format() -> ApiError:
    accepted = "application/json, application/yaml"
    why = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    return ApiError(415, "UnsupportedMediaType", why)
