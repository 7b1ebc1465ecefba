"""Commands run inside a container: local processes with the container's environment and directories."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from airflow_elastic.embedded.kubelet.container import SIDECAR_NAME, Container
from airflow_elastic.embedded.kubelet.environment import environment
from airflow_elastic.embedded.kubelet.process import LocalProcess

if TYPE_CHECKING:
    from airflow_elastic.embedded.http.exec import ExecChannels
    from airflow_elastic.embedded.kubelet.worker import PodWorker

__all__ = ["run_in_container"]

# "kill -2 $(pgrep …)", "kill -s SIGINT 1": what ends the XCom sidecar. It must never reach a shell of this machine,
# where it would find the user's own processes.
_KILL = re.compile(r"\bkill\s+-")
_NOT_FOUND = 127


async def run_in_container(worker: PodWorker, container: Container, command: list[str], channels: ExecChannels) -> int:
    """Run a command in a container; returns its exit code."""
    if container.name == SIDECAR_NAME:
        if any(_KILL.search(word) for word in command):
            _interrupt(container)
            return 0
        if len(command) == 1 and channels.wants_stdin:
            return await _sidecar_shell(worker, container, channels)
    return await _run(worker, container, command, channels)


def _interrupt(container: Container) -> None:
    if container.runner is not None:
        container.runner.interrupt()


async def _sidecar_shell(worker: PodWorker, container: Container, channels: ExecChannels) -> int:
    """Read commands from standard input as a shell does; a kill ends the sidecar."""
    pending = b""
    while True:
        chunk = await channels.stdin.get()
        if chunk is None:
            return 0
        *lines, pending = (pending + chunk).split(b"\n")
        for line in lines:
            text = line.decode("utf-8", "replace").strip()
            if _KILL.search(text):
                _interrupt(container)
                return 0
            if text:
                await _run(worker, container, ["/bin/sh", "-c", text], channels)


async def _run(worker: PodWorker, container: Container, command: list[str], channels: ExecChannels) -> int:
    directory = worker.make_directory()
    values = environment(worker.kubelet.plane, worker.pod, container.spec, directory)
    output: asyncio.Queue[tuple[str, bytes] | int] = asyncio.Queue()
    argv = [directory.rewrite(container.spec, word) for word in command]
    try:
        process = LocalProcess(
            argv,
            env=values,
            cwd=directory.home(container.spec),
            on_output=lambda name, data: output.put_nowait((name, data)),
            on_exit=output.put_nowait,
            merge_output=False,
            stdin=channels.wants_stdin,
        )
    except OSError as error:
        await channels.stderr(f'exec: "{argv[0]}": {error.strerror}\n'.encode())
        return _NOT_FOUND
    guard = worker.kubelet.guard
    guard.add(process.pid, worker.kubelet.root)
    feeding = asyncio.get_running_loop().create_task(_feed(process, channels)) if channels.wants_stdin else None
    try:
        while True:
            item = await output.get()
            if isinstance(item, int):
                return item
            name, data = item
            await (channels.stdout(data) if name == "stdout" else channels.stderr(data))
    finally:
        process.kill()
        guard.drop(process.pid)
        if feeding is not None:
            feeding.cancel()


async def _feed(process: LocalProcess, channels: ExecChannels) -> None:
    while True:
        chunk = await channels.stdin.get()
        process.write(chunk)
        if chunk is None:
            return
