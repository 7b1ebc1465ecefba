"""Local processes without threads: output and end are told by the event loop."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

__all__ = ["LocalProcess"]

_READ_BYTES = 65_536
_POLL_SECONDS = 0.02


class LocalProcess:
    """A child process in its own session, so that it ends with everything that it started.

    ``on_output`` gets ("stdout" or "stderr", bytes); ``on_exit`` gets the exit code (128 + signal) once, after the
    last output.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        on_output: Callable[[str, bytes], None],
        on_exit: Callable[[int], None],
        merge_output: bool = True,
        stdin: bool = False,
    ) -> None:
        """Start the process.

        Raises:
            OSError: the command cannot be started.
        """
        self._on_output = on_output
        self._on_exit = on_exit
        self._loop = asyncio.get_running_loop()
        self._process = subprocess.Popen(
            argv,
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if merge_output else subprocess.PIPE,
            start_new_session=True,
            bufsize=0,
        )
        self.pid = self._process.pid
        self._streams: dict[str, int] = {}
        for name, stream in (("stdout", self._process.stdout), ("stderr", self._process.stderr)):
            if stream is not None:
                os.set_blocking(stream.fileno(), False)
                self._streams[name] = stream.fileno()
                self._loop.add_reader(stream.fileno(), self._read, name)
        self._pidfd = -1
        self._ended = False
        self._watch_end()

    def write(self, data: bytes | None) -> None:
        """Write to standard input; None closes it."""
        stdin = self._process.stdin
        if stdin is None or stdin.closed:
            return
        try:
            if data is None:
                stdin.close()
            else:
                stdin.write(data)
        except OSError:
            # The process has closed its end; what it does not read is lost, as with any pipe.
            pass

    def signal(self, number: int) -> None:
        """Send a signal to the whole process group."""
        if self._ended:
            return
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            pass

    def kill(self) -> None:
        """End the whole process group at once."""
        self.signal(signal.SIGKILL)

    def _watch_end(self) -> None:
        if hasattr(os, "pidfd_open"):
            try:
                self._pidfd = os.pidfd_open(self.pid)
            except OSError:
                self._pidfd = -1
        if self._pidfd >= 0:
            self._loop.add_reader(self._pidfd, self._check_end)
        else:
            self._loop.call_later(_POLL_SECONDS, self._check_end)

    def _check_end(self) -> None:
        if self._ended:
            return
        if self._pidfd >= 0:
            # Whatever the command left in its group goes with it, as in a container; while the leader has not been
            # waited for, its group cannot be anybody else's.
            self.kill()
        code = self._process.poll()
        if code is None:
            self._loop.call_later(_POLL_SECONDS, self._check_end)
            return
        self._ended = True
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
        for name in list(self._streams):
            self._read(name)
            self._close(name)
        if self._process.stdin is not None and not self._process.stdin.closed:
            try:
                self._process.stdin.close()
            except OSError:
                pass
        self._on_exit(code if code >= 0 else 128 - code)

    def _read(self, name: str) -> None:
        fd = self._streams.get(name)
        while fd is not None:
            try:
                data = os.read(fd, _READ_BYTES)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._close(name)
                return
            self._on_output(name, data)

    def _close(self, name: str) -> None:
        fd = self._streams.pop(name, None)
        if fd is not None:
            self._loop.remove_reader(fd)
            stream = self._process.stdout if name == "stdout" else self._process.stderr
            if stream is not None:
                stream.close()
