from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from airflow_elastic.controller.supervisor import PARENT_VARIABLE, Supervisor

CHILD = "import time; time.sleep(60)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"


def wait_until(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.01)


def is_alive(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def supervise():
    started = []

    def start(code):
        supervisor = Supervisor([sys.executable, "-c", code], first_backoff_seconds=0.05)
        supervisor.start()
        started.append(supervisor)
        wait_until(lambda: supervisor.pid is not None)
        return supervisor

    yield start
    for supervisor in started:
        supervisor.stop()


def test_a_child_that_dies_is_started_again(supervise):
    supervisor = supervise(CHILD)
    first = supervisor.pid
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: supervisor.pid not in (None, first))


def test_stopping_ends_the_child_and_starts_no_other(supervise):
    supervisor = supervise(CHILD)
    pid = supervisor.pid
    supervisor.stop()
    assert not is_alive(pid)
    time.sleep(0.1)
    assert supervisor.pid is None


def test_a_stubborn_child_is_killed(supervise, monkeypatch):
    monkeypatch.setattr("airflow_elastic.controller.supervisor._STOP_SECONDS", 0.3)
    supervisor = supervise(STUBBORN)
    pid = supervisor.pid
    time.sleep(0.15)  # it has to have set its handler
    supervisor.stop()
    wait_until(lambda: not is_alive(pid))


def test_a_command_that_does_not_exist_is_tried_again_and_ends_when_told():
    supervisor = Supervisor(["/nonexistent/airflow"], first_backoff_seconds=0.01)
    supervisor.start()
    time.sleep(0.1)
    supervisor.stop()
    assert supervisor.pid is None


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_child_ends_with_its_parent_however_that_ends(number):
    child = (
        "import os, signal, time; from airflow_elastic.controller.supervisor import end_with_parent;"
        "signal.signal(signal.SIGTERM, lambda *_: os._exit(0)); end_with_parent(lambda: os._exit(0)); time.sleep(60)"
    )
    parent = (
        "import sys, time; from airflow_elastic.controller.supervisor import Supervisor;"
        f"s = Supervisor([sys.executable, '-c', {child!r}]); s.start();"
        "[time.sleep(0.01) for _ in range(500) if s.pid is None]; time.sleep(0.5); print(s.pid, flush=True);"
        "time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True)
    try:
        pid = int(process.stdout.readline())
        assert is_alive(pid)
        process.send_signal(number)
        wait_until(lambda: not is_alive(pid))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_without_a_supervisor_nothing_is_watched(monkeypatch):
    from airflow_elastic.controller.supervisor import end_with_parent

    monkeypatch.delenv(PARENT_VARIABLE, raising=False)
    assert end_with_parent(lambda: None) is False
