"""Keeps the controller running as a child process of the scheduler, and never longer than the scheduler."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence

__all__ = ["PARENT_VARIABLE", "Supervisor", "end_with_parent"]

logger = logging.getLogger(__name__)

PARENT_VARIABLE = "AIRFLOW_ELASTIC_SUPERVISOR_PID"
"""In the child's environment: the process that it must not outlive."""

_FIRST_BACKOFF_SECONDS = 1.0
_LONGEST_BACKOFF_SECONDS = 60.0
_LONG_RUN_SECONDS = 60.0
_STOP_SECONDS = 5.0
_PARENT_POLL_SECONDS = 1.0
_LAST_SECONDS = 10.0
_PR_SET_PDEATHSIG = 1


class Supervisor:
    """One child, started again with back-off whenever it ends."""

    def __init__(
        self, command: Sequence[str] | None = None, first_backoff_seconds: float = _FIRST_BACKOFF_SECONDS
    ) -> None:
        self._command = tuple(command or (sys.executable, "-m", "airflow", "elastic", "controller"))
        self._first_backoff = first_backoff_seconds
        self._stopping = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, name="elastic-controller-supervisor", daemon=True)

    @property
    def pid(self) -> int | None:
        """Return the child's process id while it runs."""
        child = self._child
        return child.pid if child is not None and child.poll() is None else None

    def start(self) -> None:
        """Start the child in a thread of its own: the caller is not held up."""
        self._thread.start()

    def stop(self) -> None:
        """End the child: politely, then by force."""
        self._stopping.set()
        child = self._child
        if child is not None and child.poll() is None:
            _signal_group(child.pid, signal.SIGTERM)
            try:
                child.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                logger.warning("The controller (process %d) did not end in %.0f s: killed", child.pid, _STOP_SECONDS)
                _signal_group(child.pid, signal.SIGKILL)
        if self._thread.ident is not None:
            self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        backoff = self._first_backoff
        environment = {**os.environ, PARENT_VARIABLE: str(os.getpid())}
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                # A session of its own: a Ctrl-C in the scheduler's terminal ends it once, through us.
                self._child = subprocess.Popen(
                    self._command, env=environment, stdin=subprocess.DEVNULL, start_new_session=True
                )
                logger.info("The controller runs as process %d", self._child.pid)
                if self._stopping.is_set():
                    _signal_group(self._child.pid, signal.SIGTERM)
                code: int | str = self._child.wait()
            except OSError as error:
                code = str(error)
            if self._stopping.is_set():
                return
            if time.monotonic() - began > _LONG_RUN_SECONDS:
                backoff = self._first_backoff
            logger.warning("The controller ended (%s); it is started again in %.0f s", code, backoff)
            self._stopping.wait(backoff)
            backoff = min(_LONGEST_BACKOFF_SECONDS, backoff * 2)


def end_with_parent(stop: Callable[[], None]) -> bool:
    """In the child: call ``stop`` when the supervisor's process is gone, also when it was killed; return if it has one.

    The kernel tells at once where it can (Linux); a look at the parent's id every second tells everywhere.
    """
    try:
        parent = int(os.environ.get(PARENT_VARIABLE, ""))
    except ValueError:
        return False
    _ask_kernel()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_POLL_SECONDS)
        stop()
        time.sleep(_LAST_SECONDS)
        os._exit(1)  # something hangs: an orphan must not go on acting

    threading.Thread(target=watch, name="watch-parent", daemon=True).start()
    return True


def _ask_kernel() -> None:
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    except (OSError, AttributeError):
        pass  # the poll remains


def _signal_group(pid: int, number: signal.Signals) -> None:
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        pass
