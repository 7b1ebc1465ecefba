"""List and watch of one resource in a thread: raw JSON, bookmarks, relist when history is gone, and a proof of life.

The server is asked to end each watch after ``watch_seconds``; reconnecting from the last resourceVersion costs little
and proves that both sides live, so that a quiet cluster and a dead connection look different.
"""

from __future__ import annotations

import json
import logging
import random
import threading
import time
from collections.abc import Iterator
from typing import Any, Protocol

from airflow_elastic.errors import ConfigurationError, TemporaryError
from airflow_elastic.kubernetes.client import ClusterApi

__all__ = ["Sink", "Watcher"]

logger = logging.getLogger(__name__)

_PAGE_OBJECTS = 500
_FIRST_BACKOFF_SECONDS = 0.2
_LONGEST_BACKOFF_SECONDS = 10.0
_SHORTEST_WATCH_SECONDS = 0.1
_GRACE_SECONDS = 5.0
"""The server's end of a watch may come this much later than asked for."""


class Sink(Protocol):
    """Where a watcher puts what it sees; called from the watcher's thread."""

    def replace(self, kind: str, objects: list[dict[str, Any]]) -> None:
        """Take a complete list: what is not in it is gone."""
        ...

    def apply(self, kind: str, event: str, obj: dict[str, Any]) -> None:
        """Take one change: ADDED, MODIFIED or DELETED."""
        ...

    def proof_of_life(self, kind: str) -> None:
        """Note that the view of this resource is current at this moment."""
        ...


class _Gone(Exception):
    """The server no longer has the history since our resourceVersion."""


class Watcher:
    """Keeps a sink current with one resource until stopped."""

    def __init__(self, api: ClusterApi, path: str, kind: str, sink: Sink, watch_seconds: float = 20.0) -> None:
        self._api = api
        self._path = path
        self._kind = kind
        self._sink = sink
        self._watch_seconds = watch_seconds
        self._stopping = threading.Event()
        self._relist = False
        self._reply: Any = None
        self._thread = threading.Thread(target=self._run, name=f"watch-{kind}", daemon=True)
        self.last_error = ""
        """Why the view does not move, while it does not; empty: it does."""

    def start(self) -> None:
        """Begin in a thread of its own."""
        self._thread.start()

    def stop(self, timeout_seconds: float = 2.0) -> None:
        """End the thread; the stream is cut so that it need not wait for the server."""
        self._stopping.set()
        self._cut()
        if self._thread.ident is not None:
            self._thread.join(timeout_seconds)

    def refresh(self) -> None:
        """Ask for a complete list soon, whatever the stream says."""
        self._relist = True
        self._cut()

    def _cut(self) -> None:
        shutdown = getattr(self._reply, "shutdown", None)
        if shutdown is None:
            return
        try:
            shutdown()
        except (ValueError, OSError, RuntimeError):
            pass  # it ended by itself meanwhile

    def _run(self) -> None:
        version: str | None = None
        backoff = _FIRST_BACKOFF_SECONDS
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                if version is None or self._relist:
                    self._relist = False
                    version = self._list()
                version = self._watch(version)
                backoff = _FIRST_BACKOFF_SECONDS
                self._pace(began)
            except _Gone:
                version = None
                self._pace(began)
            except Exception as error:
                # Whatever it was, the view must come back: say why once, then try for ever.
                if self._stopping.is_set():
                    return
                if self._relist:
                    continue  # we cut it ourselves
                if not isinstance(error, TemporaryError | ConfigurationError):
                    version = None
                self._complain(error)
                self._stopping.wait(backoff * random.uniform(0.8, 1.2))
                backoff = min(_LONGEST_BACKOFF_SECONDS, backoff * 2)

    def _pace(self, began: float) -> None:
        """A server (or a proxy before it) that ends every watch at once must not be asked without a pause."""
        if time.monotonic() - began < _SHORTEST_WATCH_SECONDS:
            self._stopping.wait(_SHORTEST_WATCH_SECONDS)

    def _complain(self, error: Exception) -> None:
        text = str(error) or type(error).__name__
        if text != self.last_error:
            logger.warning("The watch of %s was interrupted: %s", self._kind, text)
        self.last_error = text

    def _list(self) -> str:
        objects: list[dict[str, Any]] = []
        query = {"limit": str(_PAGE_OBJECTS)}
        while True:
            status, page = self._api.call("GET", self._path, query=query)
            if status == 410:
                # The continue token is too old: begin again in one piece, which cannot expire.
                objects, query = [], {}
                continue
            if status != 200:
                raise ConfigurationError(
                    f"listing {self._kind} answered {status}: {page.get('message', '')}; "
                    f"the controller's account needs get, list and watch on {self._kind}"
                )
            objects += page.get("items") or ()
            metadata = page.get("metadata") or {}
            if not metadata.get("continue"):
                break
            query = {**query, "continue": str(metadata["continue"])}
        self._sink.replace(self._kind, objects)
        self._alive()
        return str(metadata.get("resourceVersion", ""))

    def _watch(self, version: str) -> str:
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(max(1, round(self._watch_seconds))),
        }
        with self._api.stream(self._path, query, read_seconds=self._watch_seconds + _GRACE_SECONDS) as reply:
            if reply.status == 410:
                raise _Gone
            if reply.status != 200:
                raise TemporaryError(f"watching {self._kind} answered {reply.status}")
            self._reply = reply
            if self._stopping.is_set() or self._relist:
                return version  # whoever asked for it found no reply to cut
            self._alive()
            try:
                for line in _lines(reply):
                    version = self._take(line, version)
            except TimeoutError as error:
                raise TemporaryError(f"the watch of {self._kind} fell silent") from error
            except (OSError, AttributeError, ValueError) as error:
                raise self._broken(error) from error
            except Exception as error:
                # urllib3's own errors are no OSError; ours pass.
                if type(error).__module__.startswith("urllib3"):
                    raise self._broken(error) from error
                raise
            finally:
                self._reply = None
        return version

    def _broken(self, error: Exception) -> TemporaryError:
        return TemporaryError(f"the watch of {self._kind} broke off ({str(error) or type(error).__name__})")

    def _take(self, line: bytes, version: str) -> str:
        document = json.loads(line)
        event, obj = document.get("type"), document.get("object") or {}
        if event == "ERROR":
            if obj.get("code") == 410:
                raise _Gone
            raise TemporaryError(f"the watch of {self._kind} was refused: {obj.get('message', '')}")
        if event in ("ADDED", "MODIFIED", "DELETED"):
            self._sink.apply(self._kind, event, obj)
        self._alive()
        return str((obj.get("metadata") or {}).get("resourceVersion") or version)

    def _alive(self) -> None:
        self.last_error = ""
        self._sink.proof_of_life(self._kind)


def _lines(reply: Any) -> Iterator[bytes]:
    """Yield the lines of a chunked reply as they come."""
    rest = b""
    for chunk in reply.stream(65536, decode_content=True):
        *complete, rest = (rest + chunk).split(b"\n")
        yield from (line for line in complete if line.strip())
