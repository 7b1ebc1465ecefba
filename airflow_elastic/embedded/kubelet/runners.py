"""What stands behind a container: a timer, a local process, or nothing at all."""

from __future__ import annotations

import asyncio
import math
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from airflow_elastic.embedded.kubelet.logs import ContainerLog
from airflow_elastic.embedded.kubelet.process import LocalProcess

__all__ = ["ProcessRunner", "Runner", "TimedRunner"]

_SIGTERM_CODE = 128 + signal.SIGTERM


class Runner(Protocol):
    """A container that runs; it tells its exit code once, unless it is dropped."""

    def terminate(self) -> None:
        """Ask it to end (SIGTERM)."""

    def kill(self) -> None:
        """End it at once (SIGKILL)."""

    def drop(self) -> None:
        """End it at once and tell nobody: the machine or the object is gone."""

    def interrupt(self) -> None:
        """Send SIGINT, as a ``kill`` run inside the container does."""


class TimedRunner:
    """Lasts a given time; costs one timer, and none if it lasts for ever."""

    __slots__ = ("_exit_code", "_loop", "_on_exit", "_term_code", "_term_seconds", "_timer")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        seconds: float,
        on_exit: Callable[[int], None],
        *,
        exit_code: int = 0,
        term_seconds: float = 0.0,
        term_code: int = _SIGTERM_CODE,
    ) -> None:
        self._loop = loop
        self._on_exit: Callable[[int], None] | None = on_exit
        self._exit_code = exit_code
        self._term_seconds = term_seconds
        self._term_code = term_code
        self._timer = None if math.isinf(seconds) else loop.call_later(seconds, self._end, exit_code)

    def terminate(self) -> None:
        """End after the annotated time for SIGTERM."""
        self._cancel()
        if self._term_seconds > 0:
            self._timer = self._loop.call_later(self._term_seconds, self._end, self._term_code)
        else:
            self._end(self._term_code)

    def kill(self) -> None:
        """End at once."""
        self._cancel()
        self._end(128 + signal.SIGKILL)

    def drop(self) -> None:
        """Forget the timer."""
        self._on_exit = None
        self._cancel()

    def interrupt(self) -> None:
        """End as the XCom sidecar does on SIGINT."""
        self._cancel()
        self._end(0)

    def _end(self, code: int) -> None:
        on_exit, self._on_exit = self._on_exit, None
        if on_exit is not None:
            on_exit(code)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class ProcessRunner:
    """Runs a command on this machine."""

    __slots__ = ("_dropped", "_on_exit", "_on_reaped", "_process")

    def __init__(
        self,
        argv: list[str],
        env: dict[str, str],
        cwd: Path,
        log: ContainerLog,
        on_exit: Callable[[int], None],
        on_reaped: Callable[[int], None],
    ) -> None:
        """Start the command; ``on_reaped`` gets the process id in any case, also when the runner was dropped.

        Raises:
            OSError: it cannot be started.
        """
        self._dropped = False
        self._on_exit = on_exit
        self._on_reaped = on_reaped
        self._process = LocalProcess(
            argv, env=env, cwd=cwd, on_output=lambda _, data: log.feed(data), on_exit=self._ended
        )

    @property
    def pid(self) -> int:
        """Return the process id, which is also the process group."""
        return self._process.pid

    def terminate(self) -> None:
        """Send SIGTERM to the process group."""
        self._process.signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL to the process group."""
        self._process.kill()

    def drop(self) -> None:
        """Kill the process group and forget it."""
        self._dropped = True
        self._process.kill()

    def interrupt(self) -> None:
        """Send SIGINT to the process group."""
        self._process.signal(signal.SIGINT)

    def _ended(self, code: int) -> None:
        self._on_reaped(self.pid)
        if not self._dropped:
            self._on_exit(code)
