"""What commands print: a rich table for people or one JSON document for programs."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

__all__ = ["complain", "console", "emit", "harmless", "to_json"]

_WIDTH_OF_A_FILE = 160
_STEERING = dict.fromkeys((*range(32), *range(127, 160), *range(8234, 8239), *range(8294, 8298)), "�")
for _kept in "\n\t":
    del _STEERING[ord(_kept)]


def emit(args: argparse.Namespace, data: object, table: Callable[[], RenderableType]) -> None:
    """Print ``data`` as JSON with ``--output json``, else what ``table`` returns (called only then)."""
    if getattr(args, "output", "table") == "json":
        sys.stdout.write(to_json(data) + "\n")
    else:
        console().print(table())


def console() -> Console:
    """Return a console on stdout; wide when stdout is a file or a pipe, so that no cell is cut there."""
    from rich.console import Console
    from rich.segment import Segment

    class Harmless(Console):
        """What is shown comes from DAG files, databases and servers: it gets no say over the terminal."""

        def render(self, *arguments: Any, **options: Any) -> Iterator[Segment]:
            for segment in super().render(*arguments, **options):
                yield segment if segment.control else Segment(harmless(segment.text), segment.style)

    is_terminal = sys.stdout.isatty()
    width = None if is_terminal or os.environ.get("COLUMNS") else _WIDTH_OF_A_FILE
    return Harmless(width=width, highlight=False, markup=False, emoji=False)


def complain(message: str) -> None:
    """Print an error's message to stderr, as plain text."""
    sys.stderr.write(f"{harmless(message)}\n")


def harmless(text: str) -> str:
    """Return text without characters that steer a terminal or turn its writing direction; lines stay lines."""
    return text.translate(_STEERING)


def to_json(data: object) -> str:
    """Return a JSON document of plain data, dataclasses, enums, tuples and paths; numbers that are not finite: null."""
    return json.dumps(_plain(data), indent=2, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return _plain(value.value)
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int | bool):
        return value
    if isinstance(value, Path):
        return str(value)
    return str(value)
