"""Waits for the end of the demo; if it died without a word, ends what it left behind. Run as a module."""

from __future__ import annotations

import sys
from pathlib import Path

from airflow_elastic.demo.processes import end_marked, remove_tree

__all__ = ["watch"]


def watch(mark: str, remove: str) -> None:
    """Read standard input to its end (the demo holds the other side); unless told ``done``, clean up."""
    if sys.stdin.buffer.read() == b"done":
        return
    end_marked(mark)
    if remove:
        remove_tree(Path(remove))


if __name__ == "__main__":
    watch(*sys.argv[1:3])
