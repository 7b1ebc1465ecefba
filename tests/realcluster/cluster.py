"""The real cluster as tests use it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from realcluster import leftovers
from realcluster.identities import ADMIN
from realcluster.layout import ClusterOptions, Layout

__all__ = ["RealCluster", "RealClusterError"]

_PACKAGE_PARENT = Path(__file__).parents[1]
_STOP_SECONDS = 60.0


class RealClusterError(RuntimeError):
    """The cluster did not start; the message has the end of its logs."""


class RealCluster:
    """A genuine Kubernetes in namespaces of its own. Ends with this process, however that comes.

    Processes outside reach the API server, and only that, through a port of 127.0.0.1: see `kubeconfig`.
    """

    def __init__(self, options: ClusterOptions | None = None) -> None:
        self.options = options or ClusterOptions()
        self._keeper: subprocess.Popen[str] | None = None
        self._layout: Layout | None = None
        self._init = 0

    def __enter__(self) -> RealCluster:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the cluster, building it first where that has not been done; returns when it can be used.

        Raises:
            RealClusterError: it does not come up.
        """
        self._keeper = subprocess.Popen(
            [sys.executable, "-m", "realcluster.keeper", self.options.to_json()],
            env={**os.environ, "PYTHONPATH": str(_PACKAGE_PARENT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Ctrl-C in a terminal goes to the whole foreground group; the cluster ends after the tests, in order.
            start_new_session=True,
            text=True,
        )
        assert self._keeper.stdout is not None
        line = self._keeper.stdout.readline()
        if not line:
            self._keeper.wait(_STOP_SECONDS)
            raise RealClusterError("the real cluster did not start; the reason is above, on standard error")
        answer = json.loads(line)
        self._layout = Layout(Path(answer["root"]), Path(answer["programs"]))
        self._init = _first_child(answer["pid"])

    def stop(self) -> None:
        """End everything and remove what it left."""
        keeper, self._keeper = self._keeper, None
        if keeper is None:
            return
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        keeper.stdin.close()
        keeper.stdout.close()
        try:
            code = keeper.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            keeper.kill()
            keeper.wait()
            raise RealClusterError("the real cluster did not end in time; its keeper was killed") from None
        if code < 0:
            # Killed, it could not clear up.
            leftovers.sweep()

    @property
    def layout(self) -> Layout:
        """Return where its files are."""
        assert self._layout is not None, "start the cluster first"
        return self._layout

    @property
    def start_seconds(self) -> dict[str, float]:
        """Return when each step of the start was done, in seconds."""
        seconds: dict[str, float] = json.loads(self.layout.ready.read_text())
        return seconds

    def kubeconfig(self, user: str = ADMIN) -> Path:
        """Return a kubeconfig for processes of this machine."""
        return self.layout.outside_kubeconfig(user)

    def popen(self, command: Sequence[str | Path], *, user: str = ADMIN, **options: Any) -> subprocess.Popen[Any]:
        """Start a command inside, with KUBECONFIG of a user; the other arguments are those of `subprocess.Popen`.

        It sees the machine's files, so sockets in the file system (PostgreSQL's) work from there as well.
        """
        environment: Mapping[str, str] = options.pop("env", None) or os.environ
        values = {
            **environment,
            "KUBECONFIG": str(self.layout.kubeconfig(user)),
            "PYTHONPATH": os.pathsep.join(filter(None, [str(_PACKAGE_PARENT), environment.get("PYTHONPATH", "")])),
        }
        return subprocess.Popen(
            [sys.executable, "-m", "realcluster.enter", str(self._init), *map(str, command)], env=values, **options
        )

    def run(self, command: Sequence[str | Path], *, user: str = ADMIN, timeout: float = 60.0) -> str:
        """Run a command inside and return what it writes to standard output.

        Raises:
            subprocess.CalledProcessError: it failed.
            subprocess.TimeoutExpired: it takes longer than ``timeout`` seconds.
        """
        process = self.popen(command, user=user, stdout=subprocess.PIPE, text=True)
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, list(map(str, command)), output)
        return str(output)

    def log(self, component: str) -> str:
        """Return what a component wrote: etcd, kube-apiserver, kubelet-r1, …"""
        return (self.layout.logs / f"{component}.log").read_text(errors="replace")

    def signal(self, component: str, number: signal.Signals) -> None:
        """Send a signal to a component; one that ends by it starts again after a second, unless it is held."""
        inside = (self.layout.pids / component).read_text()
        self.run(["kill", "-s", number.name.removeprefix("SIG"), inside])

    def hold(self, component: str) -> None:
        """Kill a component and keep it down until `release`."""
        (self.layout.holds / component).touch()
        self.signal(component, signal.SIGKILL)

    def release(self, component: str) -> None:
        """Let a component start again."""
        (self.layout.holds / component).unlink(missing_ok=True)


def _first_child(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
