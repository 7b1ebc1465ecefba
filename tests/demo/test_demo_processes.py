"""Processes end with the demo, whatever way it ends."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from airflow_elastic.demo.environment import airflow_environment, base_environment, free_ports
from airflow_elastic.demo.processes import MARK_VARIABLE, Component, Guard, end_marked, marked_processes

# Starts a child in a session of its own that ignores SIGTERM, tells its pid, then waits.
STUBBORN = """
import subprocess, sys, time
source = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
child = subprocess.Popen([sys.executable, "-c", source], start_new_session=True, stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(60)
"""


def wait_until(condition, seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.02)


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.fixture
def mark() -> str:
    return f"test-{os.getpid()}-{time.monotonic_ns()}"


def test_the_whole_tree_ends_even_what_ignores_sigterm_in_another_session(tmp_path: Path, mark: str) -> None:
    component = Component("stubborn", [sys.executable, "-c", STUBBORN], base_environment(mark), tmp_path / "log")
    wait_until(lambda: component.last_lines())
    grandchild = int(component.last_lines()[0])
    assert {process.pid for process in marked_processes(mark)} == {component.pid, grandchild}
    killed = end_marked(mark, grace_seconds=0.2)
    component.wait(5)
    assert killed == 1
    assert gone(grandchild)
    assert component.return_code is not None


def test_the_guard_ends_all_and_removes_the_home_when_the_demo_dies(tmp_path: Path, mark: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "airflow.db").write_text("x")
    demo = f"""
import os, sys
from pathlib import Path
from airflow_elastic.demo.environment import base_environment
from airflow_elastic.demo.processes import Component, Guard
guard = Guard({mark!r}, Path({str(home)!r}))
sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
part = Component("part", sleep, base_environment({mark!r}), Path({str(tmp_path / "log")!r}))
print(part.pid, flush=True)
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", demo], stdout=subprocess.PIPE, text=True, timeout=30, check=False)
    pid = int(done.stdout)
    try:
        wait_until(lambda: gone(pid) and not home.exists())
    finally:
        end_marked(mark, grace_seconds=0.1)


def test_a_dismissed_guard_touches_nothing(tmp_path: Path, mark: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    Guard(mark, home).dismiss()
    assert home.exists()


def test_the_callers_airflow_stays_out() -> None:
    inherited = {
        "AIRFLOW_HOME": "/elsewhere",
        "AIRFLOW__CORE__EXECUTOR": "X",
        "KUBECONFIG": "/k",
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HTTP_PROXY": "http://proxy",
        "PATH": "/bin",
        "LANG": "C",
    }
    env = airflow_environment(
        base_environment("m", inherited),
        home=Path("/h"),
        dags_folder=Path("/h/dags"),
        database_url="sqlite:////h/airflow.db",
        kubeconfig=Path("/h/kubeconfig"),
        ports=free_ports(8123),
        capacity_file=None,
        controller="off",
    )
    assert env["AIRFLOW_HOME"] == "/h"
    assert env["KUBECONFIG"] == "/h/kubeconfig"
    assert env["AIRFLOW__CORE__EXECUTOR"] == "LocalExecutor"
    assert env["AIRFLOW__API__PORT"] == "8123"
    assert env["AIRFLOW__API__HOST"] == "127.0.0.1"
    assert env["LANG"] == "C"
    assert env[MARK_VARIABLE] == "m"
    assert "127.0.0.1" in env["NO_PROXY"]
    assert not {"PYTHONDONTWRITEBYTECODE", "KUBERNETES_SERVICE_HOST"} & set(env)


def test_free_ports_differ() -> None:
    ports = free_ports()
    assert len({ports.api, ports.worker_logs, ports.trigger_logs}) == 3
