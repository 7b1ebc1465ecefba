"""What Python's standard library does not offer before 3.12: mounts, namespaces, signals at a parent's death."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable
from pathlib import Path

__all__ = ["bind_mount", "die_with_parent", "enter_namespace", "mount_tmpfs", "shadow"]

_MS_BIND = 0x1000
_MS_REC = 0x4000
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def mount_tmpfs(target: Path) -> None:
    """Put an empty file system in memory over a folder.

    Raises:
        OSError: the kernel refuses.
    """
    _checked(_libc.mount(b"tmpfs", bytes(target), b"tmpfs", 0, None), target)


def bind_mount(source: Path, target: Path, *, recursive: bool = False) -> None:
    """Show a file or folder at another place.

    Raises:
        OSError: the kernel refuses.
    """
    flags = _MS_BIND | (_MS_REC if recursive else 0)
    _checked(_libc.mount(bytes(source), bytes(target), None, flags, None), target)


def shadow(folder: Path, behind: Path) -> None:
    """Make new names in a folder stay in this mount namespace, while everything that is there stays visible.

    ``behind`` becomes another way to the folder as it was.
    """
    behind.mkdir()
    bind_mount(folder, behind, recursive=True)
    mount_tmpfs(folder)
    for entry in os.scandir(behind):
        here = folder / entry.name
        if entry.is_symlink():
            here.symlink_to(Path(entry.path).readlink())
            continue
        here.mkdir() if entry.is_dir() else here.touch()
        bind_mount(Path(entry.path), here, recursive=True)


def enter_namespace(descriptor: int) -> None:
    """Move this process (its children, for process ids) into the namespace of an open /proc/PID/ns file.

    Raises:
        OSError: the kernel refuses.
    """
    _checked(_libc.setns(descriptor, 0), f"namespace {descriptor}")


def die_with_parent(number: int = signal.SIGKILL) -> Callable[[], None]:
    """Return what a child calls before its program starts, to get a signal when its parent's thread ends."""

    def call() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, int(number))

    return call


def _checked(result: int, about: object) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{os.strerror(number)}: {about}")
