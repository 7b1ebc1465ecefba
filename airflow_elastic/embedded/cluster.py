"""The embedded cluster as other programs use it: start, address, kubeconfig, test controls, stop."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from airflow_elastic.embedded.config import ClusterConfig
from airflow_elastic.embedded.event_log import EventLog
from airflow_elastic.embedded.http.asgi import Application
from airflow_elastic.embedded.nodes.machine import Machine
from airflow_elastic.embedded.plane import ControlPlane
from airflow_elastic.embedded.server import HttpServer, listening_socket
from airflow_elastic.errors import ConfigurationError, TemporaryError

__all__ = ["EmbeddedCluster"]

_Result = TypeVar("_Result")
_START_SECONDS = 30.0


class EmbeddedCluster:
    """A Kubernetes cluster on a thread of this process.

    ``time_speed`` divides the times of machines and autoscalers (boot, removal, scan, empty), not those of pods.

    Raises:
        ConfigurationError: a time speed that is not positive.
    """

    def __init__(
        self,
        config: ClusterConfig | None = None,
        *,
        event_log: Path | None = None,
        time_speed: float = 1.0,
        seed: int = 0,
        port: int = 0,
    ) -> None:
        if not time_speed > 0:
            raise ConfigurationError(f"time_speed is {time_speed}; it must be more than 0")
        self._config = config or ClusterConfig()
        self._event_log_path = event_log
        self._time_speed = time_speed
        self._seed = seed
        self._port = port
        self._thread: threading.Thread | None = None
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._plane: ControlPlane | None = None
        self.url = ""

    def __enter__(self) -> EmbeddedCluster:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the cluster; returns when it serves.

        Raises:
            TemporaryError: it does not come up, e.g. because the port is taken.
        """
        try:
            listener = listening_socket(self._port)
        except OSError as error:
            raise TemporaryError(
                f"the embedded cluster cannot listen on 127.0.0.1:{self._port}: {error}; choose another port, or 0"
            ) from error
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self._thread = threading.Thread(
            target=self._run_thread, args=(listener,), name="airflow-elastic-embedded-cluster", daemon=True
        )
        self._thread.start()
        if not self._started.wait(_START_SECONDS):
            raise TemporaryError(f"the embedded cluster did not start within {_START_SECONDS:g} s; try again")
        if self._failure is not None:
            raise TemporaryError(f"the embedded cluster could not start: {self._failure}") from self._failure

    def stop(self) -> None:
        """Stop serving and end every process of a pod."""
        thread, loop, stopping = self._thread, self._loop, self._stopping
        if thread is None:
            return
        if loop is not None and stopping is not None and thread.is_alive():
            loop.call_soon_threadsafe(stopping.set)
        thread.join(10)
        self._thread = None

    def kubeconfig(self) -> dict[str, Any]:
        """Return a kubeconfig for this cluster (plain HTTP; whoever reaches the port may do everything)."""
        context = {"cluster": "embedded", "user": "embedded", "namespace": "default"}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "embedded", "cluster": {"server": self.url}}],
            "users": [{"name": "embedded", "user": {}}],
            "contexts": [{"name": "embedded", "context": context}],
            "current-context": "embedded",
        }

    def write_kubeconfig(self, path: Path | str) -> Path:
        """Write the kubeconfig (JSON, which is YAML) in one step, so that no reader sees half of it."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{target.name}.{os.getpid()}")
        partial.write_text(json.dumps(self.kubeconfig(), indent=2) + "\n", encoding="utf-8")
        partial.replace(target)
        return target

    def fail_node(self, name: str) -> None:
        """Let a node's machine die: NotReady, its pods lost; the Node object goes after ``lost_node_seconds``.

        Raises:
            LookupError: there is no such node.
        """
        self._call(lambda plane: plane.pools.fleet.lose(self._machine(plane, name)))

    def remove_node(self, name: str) -> None:
        """Take a node away at once, as a cloud does without asking.

        Raises:
            LookupError: there is no such node.
        """
        self._call(lambda plane: plane.pools.fleet.cut(self._machine(plane, name)))

    def _machine(self, plane: ControlPlane, name: str) -> Machine:
        machine = plane.pools.fleet.get(name)
        if machine is None:
            raise LookupError(f"the embedded cluster has no node {name!r}; list the nodes for their names")
        return machine

    def _call(self, action: Callable[[ControlPlane], _Result]) -> _Result:
        """Run something on the cluster's thread."""
        loop, plane = self._loop, self._plane
        if loop is None or plane is None or self._thread is None:
            raise TemporaryError("the embedded cluster does not run; start it first")

        async def run() -> _Result:
            return action(plane)

        return asyncio.run_coroutine_threadsafe(run(), loop).result(10)

    def _run_thread(self, listener: Any) -> None:
        try:
            with asyncio.Runner(loop_factory=_loop_factory()) as runner:
                runner.run(self._serve(listener))
        except BaseException as error:
            self._failure = error
            listener.close()
        finally:
            self._started.set()

    async def _serve(self, listener: Any) -> None:
        event_log = EventLog(self._event_log_path)
        plane = ControlPlane(self._config, event_log, time_speed=self._time_speed, seed=self._seed)
        plane.address = self.url.removeprefix("http://")
        server = HttpServer(Application(plane), listener)
        self._loop, self._stopping, self._plane = plane.loop, asyncio.Event(), plane
        try:
            plane.start()
            await server.start()
            self._started.set()
            await self._stopping.wait()
        finally:
            plane.stop()
            await server.stop()
            event_log.close()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's loop where it is installed (uvicorn[standard] brings it)."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
