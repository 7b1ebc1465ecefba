"""Uvicorn without its signal handling, so that a cluster starts in milliseconds on any thread and stops at once."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

import uvicorn

from airflow_elastic.embedded.http.asgi import Application

__all__ = ["HttpServer", "listening_socket"]

# Clients keep connections in pools; a server that closes them early makes requests fail at random.
_KEEP_ALIVE_SECONDS = 600


def listening_socket(port: int) -> socket.socket:
    """Return a socket that listens on 127.0.0.1; port 0 takes a free one.

    Raises:
        OSError: the port is taken.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError:
        listener.close()
        raise
    listener.listen(2048)
    listener.setblocking(False)
    return listener


class HttpServer:
    """Serves one application on one socket."""

    def __init__(self, application: Application, listener: socket.socket) -> None:
        config = uvicorn.Config(
            application,
            interface="asgi3",
            lifespan="off",
            log_config=None,
            access_log=False,
            log_level=logging.WARNING,
            server_header=False,
            date_header=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            ws_ping_interval=None,
            ws_max_size=16 * 1024 * 1024,
        )
        config.load()
        self._server: Any = uvicorn.Server(config)
        self._server.lifespan = config.lifespan_class(config)
        self._listener = listener

    async def start(self) -> None:
        """Begin to serve."""
        await self._server.startup(sockets=[self._listener])

    async def stop(self) -> None:
        """Stop serving; what is still open is cut."""
        for server in self._server.servers:
            server.close()
        self._listener.close()
        # Watches and followed logs have been told to end; give them one moment to say so.
        tasks = set(self._server.server_state.tasks)
        if tasks:
            await asyncio.wait(tasks, timeout=0.2)
        for connection in list(self._server.server_state.connections):
            transport = getattr(connection, "transport", None)
            if transport is not None:
                transport.abort()
        leftover = set(self._server.server_state.tasks)
        for task in leftover:
            task.cancel()
        if leftover:
            await asyncio.wait(leftover, timeout=0.5)
