"""Processes of the demo: started in sessions of their own, ended by process id with everything that they started."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import psutil

__all__ = ["MARK_VARIABLE", "Component", "Guard", "end_marked", "marked_processes"]

MARK_VARIABLE = "AIRFLOW_ELASTIC_DEMO"
"""Environment variable that every process of one demo carries, so that even re-parented ones are found again."""


def marked_processes(mark: str) -> list[psutil.Process]:
    """Return the living processes of this user whose environment carries ``mark``, the caller excepted."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(MARK_VARIABLE) == mark:
                found.append(process)
        except (psutil.Error, OSError):
            continue  # gone meanwhile, or somebody else's
    return found


def end_marked(mark: str, *, grace_seconds: float = 3.0, first: Iterable[psutil.Process] = ()) -> int:
    """End every process that carries ``mark``: SIGTERM, then SIGKILL after a grace period; return how many were.

    Repeats until a look finds none, since a process may start another while it is being ended.
    """
    targets = {process.pid: process for process in [*first, *marked_processes(mark)]}
    for process in targets.values():
        _signal(process, kill=False)
    psutil.wait_procs(list(targets.values()), timeout=grace_seconds)
    killed = 0
    for _ in range(10):
        alive = [process for process in marked_processes(mark) if process.status() != psutil.STATUS_ZOMBIE]
        if not alive:
            break
        for process in alive:
            killed += 1
            _signal(process, kill=True)
        psutil.wait_procs(alive, timeout=2.0)
    return killed


def _signal(process: psutil.Process, *, kill: bool) -> None:
    try:
        process.kill() if kill else process.terminate()
    except psutil.Error:
        pass


class Component:
    """One process with its log file."""

    def __init__(self, name: str, argv: Sequence[str], env: Mapping[str, str], log_path: Path) -> None:
        self.name = name
        self.log_path = log_path
        self.started_at = time.monotonic()
        log_path.parent.mkdir(parents=True, exist_ok=True)
        with log_path.open("ab") as log:
            # A session of its own: Ctrl-C in the terminal reaches the demo only, which then ends the others in order.
            self._process = subprocess.Popen(
                list(argv), env=dict(env), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self._process.pid

    @property
    def return_code(self) -> int | None:
        """Return the exit code, None while it runs."""
        return self._process.poll()

    @property
    def age_seconds(self) -> float:
        """Return the seconds since it was started."""
        return time.monotonic() - self.started_at

    def wait(self, timeout_seconds: float) -> int:
        """Wait for its end and return the exit code.

        Raises:
            subprocess.TimeoutExpired: it still runs.
        """
        return self._process.wait(timeout_seconds)

    def tree(self) -> list[psutil.Process]:
        """Return the process and its descendants that are alive."""
        try:
            process = psutil.Process(self.pid)
            return [process, *process.children(recursive=True)]
        except psutil.Error:
            return []

    def last_lines(self, count: int = 15) -> list[str]:
        """Return the end of its log."""
        try:
            with self.log_path.open("rb") as log:
                log.seek(0, os.SEEK_END)
                log.seek(max(0, log.tell() - 64 * 1024))
                text = log.read().decode(errors="replace")
        except OSError:
            return []
        return text.splitlines()[-count:]


class Guard:
    """A tiny process that ends the whole demo and removes its home when the demo itself dies without doing so."""

    def __init__(self, mark: str, remove: Path | None) -> None:
        env = {key: value for key, value in os.environ.items() if key != MARK_VARIABLE}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "airflow_elastic.demo.guard", mark, str(remove or "")],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def dismiss(self) -> None:
        """Tell it that everything has ended in order; it goes without doing anything."""
        try:
            self._process.communicate(b"done", timeout=5)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()


def remove_tree(path: Path) -> None:
    """Remove a folder; a process that just died may still have been writing, so try a few times."""
    for _ in range(5):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            return
        time.sleep(0.2)
