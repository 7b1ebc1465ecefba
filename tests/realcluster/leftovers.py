"""Finds and removes what dead clusters left: control groups and folders."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from realcluster.layout import Layout

__all__ = ["FOLDER_PREFIX", "living", "remove", "sweep"]

FOLDER_PREFIX = "airflow-elastic-realcluster-"
_CGROUP_SECONDS = 10.0


@contextmanager
def living(layout: Layout) -> Iterator[int]:
    """Hold the lock that says that a cluster lives; gives its descriptor, for processes that share it."""
    unlocked = layout.lock.with_suffix(".new")
    with unlocked.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        # It has its name only once it is locked: another process's sweep must not see it before.
        unlocked.rename(layout.lock)
        yield handle.fileno()


def sweep() -> list[Path]:
    """Remove what clusters left whose every process is gone (the machine's own end of them); returns their folders."""
    removed = []
    for root in sorted(Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*")):
        layout = Layout(root, root)
        if not layout.lock.exists():
            continue
        with layout.lock.open("w") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            remove(layout)
            removed.append(root)
    return removed


def remove(layout: Layout) -> None:
    """Remove a dead cluster's control groups and folder.

    Raises:
        RuntimeError: something is left after all.
    """
    deadline = time.monotonic() + _CGROUP_SECONDS
    while left := _remove_cgroups(layout):
        if time.monotonic() > deadline:
            raise RuntimeError(f"control groups of {layout.root} cannot be removed: {', '.join(map(str, left))}")
        time.sleep(0.1)
    shutil.rmtree(layout.root)


def _remove_cgroups(layout: Layout) -> list[Path]:
    left = []
    for group in layout.cgroups():
        for folder, _, _ in os.walk(group, topdown=False):
            try:
                Path(folder).rmdir()
            except OSError:
                left.append(Path(folder))
    return left
