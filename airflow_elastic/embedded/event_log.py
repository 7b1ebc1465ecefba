"""The cluster's own record of what happened: one JSON line per fact, independent of every controller that uses it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, TextIO

__all__ = ["EventLog"]

_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


class EventLog:
    """Writes facts to a file, line-buffered; without a path it writes nothing."""

    __slots__ = ("_file",)

    def __init__(self, path: Path | None) -> None:
        self._file: TextIO | None = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a", buffering=1, encoding="utf-8")

    @property
    def enabled(self) -> bool:
        """Tell whether facts are kept (callers skip making costly ones)."""
        return self._file is not None

    def write(self, kind: str, **fact: Any) -> None:
        """Append one fact with the present wall-clock time ``t`` (unix seconds)."""
        if self._file is not None:
            self._file.write(_encode({"t": round(time.time(), 6), "kind": kind, **fact}) + "\n")

    def close(self) -> None:
        """Close the file; further facts are dropped."""
        if self._file is not None:
            self._file.close()
            self._file = None
