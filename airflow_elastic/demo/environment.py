"""The environment of the demo's processes: nothing of the caller's Airflow, everything small and local."""

from __future__ import annotations

import base64
import os
import secrets
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from airflow_elastic.demo.processes import MARK_VARIABLE

__all__ = ["Ports", "airflow_environment", "base_environment", "free_ports"]


@dataclass(frozen=True, slots=True)
class Ports:
    """Ports on 127.0.0.1."""

    api: int
    worker_logs: int
    trigger_logs: int


def free_ports(api: int = 0) -> Ports:
    """Return free ports; ``api`` fixes the one of Airflow's UI."""
    sockets = [socket.socket() for _ in range(3)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        found = [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
    return Ports(api or found[0], found[1], found[2])


def base_environment(mark: str, inherited: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the caller's environment without its Airflow, its proxies for local addresses and its bytecode switch."""
    inherited = os.environ if inherited is None else inherited
    env = {
        key: value
        for key, value in inherited.items()
        if not key.startswith(("AIRFLOW_", "_AIRFLOW", "KUBERNETES_"))
        # Without bytecode each task imports for 10–17 s instead of 4–6.
        and key not in ("PYTHONDONTWRITEBYTECODE", "KUBECONFIG")
    }
    env[MARK_VARIABLE] = mark
    env["NO_PROXY"] = env["no_proxy"] = "127.0.0.1,localhost"
    env["SPT_NOENV"] = "1"  # process titles must not overwrite the environment, by which we find our processes
    env["PYTHONUNBUFFERED"] = "1"
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env.get("PATH", os.defpath)])
    return env


def airflow_environment(
    base: Mapping[str, str],
    *,
    home: Path,
    dags_folder: Path,
    database_url: str,
    kubeconfig: Path,
    ports: Ports,
    capacity_file: Path | None,
    controller: str,
) -> dict[str, str]:
    """Return the environment of the Airflow processes: LocalExecutor, no login, sizes for a small machine."""
    api = f"http://127.0.0.1:{ports.api}"
    options = {
        "CORE__EXECUTOR": "LocalExecutor",
        "CORE__PARALLELISM": "6",
        "CORE__DAGS_FOLDER": str(dags_folder),
        "CORE__PLUGINS_FOLDER": str(home / "plugins"),
        "CORE__LOAD_EXAMPLES": "False",
        "CORE__DAGS_ARE_PAUSED_AT_CREATION": "True",
        "CORE__DAGBAG_IMPORT_TIMEOUT": "90",
        "CORE__FERNET_KEY": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "CORE__EXECUTION_API_SERVER_URL": f"{api}/execution/",
        "CORE__HOSTNAME_CALLABLE": "socket.gethostname",
        "CORE__MP_START_METHOD": "fork",
        "API__HOST": "127.0.0.1",
        "API__PORT": str(ports.api),
        "API__BASE_URL": api,
        "API__WORKERS": "1",
        "API__SECRET_KEY": secrets.token_hex(16),
        "API_AUTH__JWT_SECRET": secrets.token_hex(32),
        "DATABASE__SQL_ALCHEMY_CONN": database_url,
        "SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.5",
        "SCHEDULER__TASK_QUEUED_TIMEOUT_CHECK_INTERVAL": "600",
        "DAG_PROCESSOR__PARSING_PROCESSES": "1",
        "DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "120",
        "DAG_PROCESSOR__REFRESH_INTERVAL": "600",
        "DAG_PROCESSOR__DAG_FILE_PROCESSOR_TIMEOUT": "120",
        "DAG_PROCESSOR__STALE_DAG_THRESHOLD": "300",
        "LOGGING__BASE_LOG_FOLDER": str(home / "logs"),
        "LOGGING__DAG_PROCESSOR_CHILD_PROCESS_LOG_DIRECTORY": str(home / "logs" / "dag_processor"),
        "LOGGING__WORKER_LOG_SERVER_PORT": str(ports.worker_logs),
        "LOGGING__TRIGGER_LOG_SERVER_PORT": str(ports.trigger_logs),
        "LOGGING__COLORED_CONSOLE_LOG": "False",
        "ELASTIC__CAPACITY_FILE": str(capacity_file or ""),
        "ELASTIC__CONTROLLER": controller,
    }
    return {
        **base,
        "AIRFLOW_HOME": str(home),
        "KUBECONFIG": str(kubeconfig),
        **{f"AIRFLOW__{name}": value for name, value in options.items()},
    }
