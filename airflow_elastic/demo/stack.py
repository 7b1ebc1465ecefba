"""The whole stack as processes: embedded cluster, metadata DB, Airflow. Started in order, ended by process id."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import yaml

from airflow_elastic.demo.airflow_api import AirflowApi
from airflow_elastic.demo.bytecode import warm_bytecode_command
from airflow_elastic.demo.database import Database
from airflow_elastic.demo.environment import airflow_environment, base_environment, free_ports
from airflow_elastic.demo.processes import Component, Guard, end_marked, remove_tree
from airflow_elastic.demo.progress import Progress
from airflow_elastic.demo.variant import Variant
from airflow_elastic.errors import ElasticError, TemporaryError

__all__ = ["ComponentDied", "Stack"]

_AIRFLOW_PARTS = ("api-server", "dag-processor", "scheduler", "triggerer")


class ComponentDied(ElasticError):
    """A process of the stack ended, or did not come up, although it has to run."""


class Stack:
    """Use as a context manager: ``with Stack(...) as stack: stack.start()``; the end of the block ends everything."""

    def __init__(
        self,
        variant: Variant,
        progress: Progress,
        *,
        keep: Path | None = None,
        port: int = 0,
        speed: float = 1.0,
        database_url: str = "",
    ) -> None:
        self.variant = variant
        self.progress = progress
        self.home = Path(keep).absolute() if keep else Path(tempfile.mkdtemp(prefix="airflow-elastic-demo-"))
        self.home.mkdir(parents=True, exist_ok=True)
        self._keeps_home = keep is not None
        self._mark = f"{os.getpid()}-{secrets.token_hex(8)}"
        self._speed = speed
        self.components: list[Component] = []
        self.kubeconfig = self.home / "kubeconfig"
        self.event_log = self.home / "events.jsonl"
        self.capacity_file = self.home / "capacity.yaml"
        self.database_url = database_url or f"sqlite:///{self.home / 'airflow.db'}"
        ports = free_ports(port)
        self._base_env = base_environment(self._mark)
        self._env = airflow_environment(
            self._base_env,
            home=self.home,
            dags_folder=self.home / "dags",
            database_url=self.database_url,
            kubeconfig=self.kubeconfig,
            ports=ports,
            capacity_file=None if variant.controller == "off" else self.capacity_file,
            controller=variant.controller,
        )
        self.api = AirflowApi(f"http://127.0.0.1:{ports.api}")
        self._guard: Guard | None = None

    def __enter__(self) -> Stack:
        self._guard = Guard(self._mark, None if self._keeps_home else self.home)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start everything and return when Airflow is healthy and all DAGs are parsed (paused).

        Raises:
            ComponentDied: a part ended or did not come up; the message has its last log lines.
        """
        self._write_files()
        self._start_cluster()
        command = [sys.executable, "-c", warm_bytecode_command()]
        self._run("preparing bytecode and the metadata DB", "db-migrate", command, timeout_seconds=300)
        for part in _AIRFLOW_PARTS:
            argv = [sys.executable, "-m", "airflow_elastic.demo.airflow_main", part]
            self.components.append(Component(part, argv, self._env, self.home / "logs" / f"{part}.log"))
        self._wait("starting Airflow (API server)", self._api_answers, 180)
        self._wait("starting Airflow (scheduler, triggerer, DAG processor)", self._airflow_is_healthy, 180)
        for pool, slots in self.variant.static_pools.items():
            self.api.set_pool(pool, slots)
        self._wait("parsing the DAGs", self._dags_are_parsed, 180)

    def check(self) -> None:
        """Raise where a part has ended.

        Raises:
            ComponentDied: with the part's last log lines.
        """
        for component in self.components:
            code = component.return_code
            if code is not None:
                raise ComponentDied(self._about(component, f"ended with exit code {code}"))

    def wait_for_controller(self, is_there: Callable[[], bool]) -> None:
        """Wait until the controller, which the scheduler supervises, has published its first status.

        Raises:
            ComponentDied: it does not come up.
        """
        self._wait("waiting for the controller's first plan", is_there, 90)

    def database(self) -> Database:
        """Return a new read-only connection to the metadata DB."""
        return Database(self.database_url)

    def stop(self) -> None:
        """End every process of this stack and remove its temporary home. May be called twice."""
        end_marked(self._mark, first=[process for component in self.components for process in component.tree()])
        for component in self.components:
            try:
                component.wait(2.0)
            except subprocess.TimeoutExpired:  # pragma: no cover - killed above, reaped by the kernel later
                pass
        self.components.clear()
        if self._guard is not None:
            self._guard.dismiss()
            self._guard = None
        if not self._keeps_home:
            remove_tree(self.home)

    # -- steps ---------------------------------------------------------------------------------------------------

    def _write_files(self) -> None:
        dags = self.home / "dags"
        dags.mkdir(exist_ok=True)
        for name, text in self.variant.dag_files.items():
            (dags / name).write_text(text)
        self.capacity_file.write_text(yaml.safe_dump(dict(self.variant.capacity), sort_keys=False))
        (self.home / "cluster.yaml").write_text(yaml.safe_dump(dict(self.variant.cluster), sort_keys=False))
        (self.home / "plugins").mkdir(exist_ok=True)

    def _start_cluster(self) -> None:
        argv = [
            sys.executable, "-m", "airflow_elastic.embedded",
            "--port", "0",
            "--config", str(self.home / "cluster.yaml"),
            "--kubeconfig", str(self.kubeconfig),
            "--event-log", str(self.event_log),
            "--time-speed", str(self._speed),
            "--exit-with-parent",
        ]  # fmt: skip
        self.components.append(Component("embedded", argv, self._base_env, self.home / "logs" / "embedded.log"))
        self._wait("starting the embedded cluster", self._cluster_answers, 30)

    def _cluster_answers(self) -> bool:
        if not self.kubeconfig.exists():
            return False
        try:
            server = yaml.safe_load(self.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
                f"{server}/readyz", timeout=2
            ) as answer:
                return bool(answer.status == 200)
        except (OSError, yaml.YAMLError, TypeError, KeyError):
            return False  # half written, or not listening yet

    def _api_answers(self) -> bool:
        try:
            self.api.unhealthy()
        except TemporaryError:
            return False
        return True

    def _airflow_is_healthy(self) -> bool:
        return not self.api.unhealthy()

    def _dags_are_parsed(self) -> bool:
        errors = self.api.import_errors()
        if errors:
            shown = "\n".join(f"{name}:\n{trace}" for name, trace in errors.items())
            raise ComponentDied(f"an example DAG cannot be imported:\n{shown}")
        return len(self.api.dag_ids()) >= sum("DAG(" in text for text in self.variant.dag_files.values())

    def _run(self, step: str, name: str, argv: list[str], *, timeout_seconds: float) -> None:
        component = Component(name, argv, self._env, self.home / "logs" / f"{name}.log")
        deadline = time.monotonic() + timeout_seconds
        while (code := component.return_code) is None:
            self.check()
            self.progress.step(step)
            if time.monotonic() > deadline:
                raise ComponentDied(self._about(component, f"did not finish within {timeout_seconds:.0f} s"))
            time.sleep(0.2)
        if code != 0:
            raise ComponentDied(self._about(component, f"failed with exit code {code}"))

    def _wait(self, step: str, is_done: Callable[[], bool], timeout_seconds: float) -> None:
        deadline = time.monotonic() + timeout_seconds
        while True:
            self.check()
            try:
                if is_done():
                    return
            except TemporaryError:
                pass  # asked again until the deadline
            self.progress.step(step)
            if time.monotonic() > deadline:
                logs = "\n".join(self._about(component, "is still running") for component in self.components)
                raise ComponentDied(f"{step}: not done within {timeout_seconds:.0f} s\n{logs}")
            time.sleep(0.3)

    def _about(self, component: Component, what: str) -> str:
        lines = "\n".join(f"    {line}" for line in component.last_lines())
        return f"{component.name} {what}; the end of {component.log_path}:\n{lines}"
