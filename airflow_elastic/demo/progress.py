"""What the demo tells on stderr while it works: one line that moves in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TextIO

__all__ = ["Progress"]


class Progress:
    """Lines about what is going on. In a terminal the current step's line is rewritten with its seconds."""

    def __init__(self, stream: TextIO | None = None, *, every_seconds: float = 10.0) -> None:
        self._stream = stream or sys.stderr
        self._is_terminal = self._stream.isatty()
        self._every = every_seconds
        self._started_at = time.monotonic()
        self._step = ""
        self._step_at = 0.0
        self._told_at = 0.0

    def step(self, text: str, detail: str = "") -> None:
        """Say what is waited for; called again and again with the same text it shows the seconds that have passed.

        ``detail`` may change at each call.
        """
        now = time.monotonic()
        if text != self._step:
            self._step, self._step_at, self._told_at = text, now, 0.0
        if self._is_terminal:
            self._write(f"\r\x1b[2K{text}… {now - self._step_at:.0f} s{detail and f'; {detail}'}")
        elif now - self._told_at >= self._every or not self._told_at:
            self._told_at = now
            self._write(f"[{now - self._started_at:4.0f} s] {text}…{detail and f' {detail}'}\n")

    def say(self, text: str) -> None:
        """Print a line that stays."""
        if self._is_terminal:
            self._write(f"\r\x1b[2K{text}\n")
        else:
            self._write(f"[{time.monotonic() - self._started_at:4.0f} s] {text}\n")
        self._step = ""

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
