"""One open watch: which changes it wants and the lines that wait to be sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from airflow_elastic.embedded.selectors import Selection
from airflow_elastic.embedded.store.entry import ADDED, DELETED, MODIFIED, Change, Entry, json_frame

__all__ = ["FrameEncoder", "Watcher"]

FrameEncoder = Callable[[str, Entry], bytes]

# A reader this far behind is cut off, as an API server does; it lists again.
_MAX_PENDING = 100_000


class Watcher:
    """Collects the lines of one watch until its connection takes them."""

    __slots__ = ("_encoder", "_pending", "_wake", "closed", "selection")

    def __init__(self, selection: Selection, encoder: FrameEncoder | None = None) -> None:
        self.selection = selection
        self._encoder = encoder
        self._pending: list[bytes] = []
        self._wake = asyncio.Event()
        self.closed = False

    def offer(self, change: Change) -> None:
        """Take a change if the selection wants it; leaving or entering the selection shows as DELETED or ADDED."""
        selection = self.selection
        if selection.everything:
            self._push_change(change)
            return
        wanted = selection.matches(change.entry.obj)
        if change.previous is None:
            if wanted:
                self._push_change(change)
            return
        before = selection.matches(change.previous.obj)
        if change.type == DELETED:
            # A deletion is seen by those who saw the object before.
            if before:
                self._push_change(change)
        elif wanted and before:
            self._push_change(change)
        elif wanted:
            self.push_entry(ADDED, change.entry)
        elif before:
            self._push_left(change.previous, change.entry)

    def push_entry(self, type_: str, entry: Entry) -> None:
        """Queue one object under a type of the caller's choice."""
        self.push(self._encoder(type_, entry) if self._encoder else json_frame(type_, entry))

    def push(self, frame: bytes) -> None:
        """Queue one line."""
        self._pending.append(frame)
        if len(self._pending) > _MAX_PENDING:
            self.closed = True
        self._wake.set()

    def close(self) -> None:
        """End the watch after what is queued."""
        self.closed = True
        self._wake.set()

    def take(self) -> bytes:
        """Return everything that waits, as one chunk."""
        chunk = b"".join(self._pending)
        self._pending.clear()
        self._wake.clear()
        return chunk

    async def wait(self) -> None:
        """Return when lines wait or the watch is closed."""
        if not self._pending and not self.closed:
            await self._wake.wait()

    def _push_left(self, before: Entry, now: Entry) -> None:
        """Queue an object that has left the selection: as it was last seen, with the version of the change."""
        metadata = {**before.obj["metadata"], "resourceVersion": now.obj["metadata"]["resourceVersion"]}
        self.push_entry(DELETED, Entry(before.key, {**before.obj, "metadata": metadata}, now.version))

    def _push_change(self, change: Change) -> None:
        if self._encoder is not None:
            self.push(self._encoder(change.type, change.entry))
        elif change.type in (ADDED, MODIFIED, DELETED):
            self.push(change.frame)
