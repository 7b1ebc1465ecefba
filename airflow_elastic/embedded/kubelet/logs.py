"""What a container has written, with the time of each line."""

from __future__ import annotations

import asyncio
import bisect
import time

from airflow_elastic.embedded import timestamps

__all__ = ["ContainerLog"]

# As a kubelet's default for containerLogMaxSize: older lines are dropped.
_MAX_BYTES = 10 * 1024 * 1024
# A line longer than this is cut into several, as container runtimes do.
_MAX_LINE = 16 * 1024


class ContainerLog:
    """Lines of one container, with their ends; positions stay valid when old lines are dropped."""

    __slots__ = ("_bytes", "_lines", "_partial", "_stamps", "_times", "closed", "first", "followers")

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._stamps: list[str] = []
        self._times: list[float] = []
        self._partial = b""
        self._bytes = 0
        self.first = 0
        """Position of the oldest line that is kept."""
        self.closed = False
        self.followers: set[asyncio.Event] = set()

    @property
    def end(self) -> int:
        """Return the position after the last whole line."""
        return self.first + len(self._lines)

    def feed(self, data: bytes) -> None:
        """Append output; a line counts when it is complete, the last one also at the end of the log."""
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            self._append(line + b"\n")
        while len(self._partial) > _MAX_LINE:
            self._append(self._partial[:_MAX_LINE])
            self._partial = self._partial[_MAX_LINE:]
        self._notify()

    def write_line(self, text: str) -> None:
        """Append one line of the cluster's own."""
        self.feed(text.encode() + b"\n")

    def close(self) -> None:
        """End the log: the container writes no more."""
        if self._partial:
            self._append(self._partial)
            self._partial = b""
        self.closed = True
        self._notify()

    def read(self, position: int, stamped: bool) -> tuple[bytes, int]:
        """Return the text from a position on, and the position after it."""
        start = max(0, position - self.first)
        lines = self._lines[start:]
        if stamped:
            # The pieces of one long line have one time, that of the first.
            begins = [index == 0 or lines[index - 1].endswith(b"\n") for index in range(len(lines))]
            lines = [
                stamp.encode() + b" " + line if begin else line
                for stamp, line, begin in zip(self._stamps[start:], lines, begins, strict=True)
            ]
        return b"".join(lines), self.end

    def position_at(self, seconds: float) -> int:
        """Return the position of the first line written at or after a time (unix seconds)."""
        return self.first + bisect.bisect_left(self._times, seconds)

    def tail(self, lines: int, max_bytes: int) -> str:
        """Return the end of the log (termination message of failed containers)."""
        text = b"".join(self._lines[-lines:])
        return text[-max_bytes:].decode("utf-8", "replace")

    def _append(self, line: bytes) -> None:
        self._lines.append(line)
        self._stamps.append(timestamps.now_nano())
        self._times.append(time.time())
        self._bytes += len(line)
        if self._bytes > _MAX_BYTES:
            drop = max(1, len(self._lines) // 4)
            self._bytes -= sum(len(old) for old in self._lines[:drop])
            del self._lines[:drop], self._stamps[:drop], self._times[:drop]
            self.first += drop

    def _notify(self) -> None:
        for event in self.followers:
            event.set()
