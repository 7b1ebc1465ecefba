"""exec over WebSocket: channel-prefixed frames, the result on channel 3 (v4 and v5 of channel.k8s.io)."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from airflow_elastic.embedded.http.request import Receive, Scope, Send
from airflow_elastic.embedded.http.status import ApiError, bad_request, not_found, status_object
from airflow_elastic.embedded.http.target import find_target
from airflow_elastic.embedded.store.entry import Entry, encode

if TYPE_CHECKING:
    from airflow_elastic.embedded.plane import ControlPlane

__all__ = ["ExecChannels", "serve_exec"]

_PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_STDIN, _STDOUT, _STDERR, _ERROR, _CLOSE = 0, 1, 2, 3, 255


class ExecChannels:
    """The streams of one exec session."""

    def __init__(self, send: Send, *, stdin: bool) -> None:
        self._send = send
        self.wants_stdin = stdin
        self.stdin: asyncio.Queue[bytes | None] = asyncio.Queue()
        """Chunks from the client; None at the end."""

    async def stdout(self, data: bytes) -> None:
        """Send bytes of standard output."""
        await self._send({"type": "websocket.send", "bytes": bytes([_STDOUT]) + data})

    async def stderr(self, data: bytes) -> None:
        """Send bytes of standard error."""
        await self._send({"type": "websocket.send", "bytes": bytes([_STDERR]) + data})

    async def finish(self, exit_code: int) -> None:
        """Send the result and close."""
        if exit_code == 0:
            status = status_object(0, "", "")
            del status["code"]
        else:
            causes = [{"reason": "ExitCode", "message": str(exit_code)}]
            message = f"command terminated with non-zero exit code: exit code {exit_code}"
            status = status_object(500, "NonZeroExitCode", message, {"causes": causes})
        await self._send({"type": "websocket.send", "bytes": bytes([_ERROR]) + encode(status)})
        await self._send({"type": "websocket.close", "code": 1000})

    async def pump(self, receive: Receive) -> None:
        """Put what the client sends into ``stdin`` until it leaves; frames come as bytes or as text."""
        while True:
            message = await receive()
            if message["type"] == "websocket.disconnect":
                break
            frame = _frame(message)
            if frame[:1] == bytes([_CLOSE]) and frame[1:2] == bytes([_STDIN]):
                await self.stdin.put(None)
            elif frame[:1] == bytes([_STDIN]) and len(frame) > 1:
                await self.stdin.put(frame[1:])
        await self.stdin.put(None)


def _frame(message: MutableMapping[str, Any]) -> bytes:
    data = message.get("bytes")
    if data is not None:
        return bytes(data)
    return str(message.get("text") or "").encode()


async def serve_exec(plane: ControlPlane, scope: Scope, receive: Receive, send: Send) -> None:
    """Run a command in a container and carry its streams."""
    await receive()
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
    try:
        entry, container = _find(plane, scope["path"], query)
    except ApiError as error:
        await _refuse(send, error)
        return
    protocol = next((name for name in _PROTOCOLS if name in scope.get("subprotocols", ())), None)
    await send({"type": "websocket.accept", "subprotocol": protocol})
    channels = ExecChannels(send, stdin=query.get("stdin", [""])[0].lower() in ("true", "1"))
    loop = asyncio.get_running_loop()
    pump = loop.create_task(channels.pump(receive))
    run = loop.create_task(plane.kubelet.exec(entry.uid, container, query.get("command", []), channels))
    await asyncio.wait({pump, run}, return_when=asyncio.FIRST_COMPLETED)
    if run.done() and not run.exception():
        await channels.finish(run.result())
        pump.cancel()
        return
    # The client has left: the command's streams are gone, so the command ends too.
    run.cancel()
    pump.cancel()
    await asyncio.gather(run, pump, return_exceptions=True)


def _find(plane: ControlPlane, path: str, query: dict[str, list[str]]) -> tuple[Entry, str]:
    target = find_target([part for part in path.split("/") if part]) if path.startswith("/api/v1/") else None
    if target is None or target.subresource != "exec":
        raise ApiError(404, "NotFound", "the server could not find the requested resource")
    entry = plane.store("pods").get(target.key)
    if entry is None:
        raise not_found("pods", "", target.name)
    if not query.get("command"):
        raise bad_request("you must specify at least one command for the container")
    names = [container["name"] for container in entry.obj["spec"]["containers"]]
    container = query.get("container", [""])[0] or names[0]
    if container not in names:
        raise bad_request(f"container {container} is not valid for pod {target.name}")
    if not plane.kubelet.is_running(entry.uid, container):
        raise ApiError(500, "", f'container not found ("{container}")')
    return entry, container


async def _refuse(send: Send, error: ApiError) -> None:
    """Answer the handshake with a plain HTTP response."""
    # What a kubelet refuses comes as its own text, what the API server refuses as a Status.
    plain = error.code == 500
    body = error.message.encode() if plain else encode(error.as_object())
    kind = b"text/plain; charset=utf-8" if plain else b"application/json"
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
    await send({"type": "websocket.http.response.start", "status": error.code, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": body})
