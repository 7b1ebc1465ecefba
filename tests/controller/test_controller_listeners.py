from __future__ import annotations

import os
import sys

import pytest

airflow_listener = pytest.importorskip("airflow.listeners.listener")

from airflow_elastic import listeners  # noqa: E402


class Job:
    job_type = None


class TaskRunnerMarker:
    pass


class FakeSupervisor:
    running = 0

    def start(self):
        FakeSupervisor.running += 1

    def stop(self):
        FakeSupervisor.running -= 1


@pytest.fixture
def in_scheduler(monkeypatch):
    monkeypatch.setattr(listeners, "_scheduler_pid", None)
    monkeypatch.setattr(sys, "argv", ["airflow", "scheduler", "--num-runs", "3"])
    monkeypatch.setattr(os, "register_at_fork", lambda **_: None)
    monkeypatch.setattr("airflow_elastic.controller.supervisor.Supervisor", FakeSupervisor)
    monkeypatch.setattr(FakeSupervisor, "running", 0)
    monkeypatch.delenv("AIRFLOW__ELASTIC__CONTROLLER", raising=False)


def test_the_scheduler_has_one_and_it_runs_from_start_to_stop(in_scheduler):
    (listener,) = listeners.scheduler_listeners()
    listener.on_starting(Job())
    listener.on_starting(Job())
    assert FakeSupervisor.running == 1
    listener.before_stopping(Job())
    listener.before_stopping(Job())
    assert FakeSupervisor.running == 0


@pytest.mark.parametrize(
    "argv",
    [["airflow", "dag-processor"], ["airflow", "triggerer"], ["airflow", "api-server"], ["airflow", "standalone"],
     ["airflow", "tasks", "run", "scheduler"], ["pytest"], ["airflow"]],
)  # fmt: skip
def test_other_processes_have_none(in_scheduler, monkeypatch, argv):
    monkeypatch.setattr(sys, "argv", argv)
    assert listeners.scheduler_listeners() == []


@pytest.mark.parametrize("mode", ["standalone", "off"])
def test_other_modes_have_none(in_scheduler, monkeypatch, mode):
    monkeypatch.setenv("AIRFLOW__ELASTIC__CONTROLLER", mode)
    assert listeners.scheduler_listeners() == []


def test_a_forked_worker_has_none_though_its_arguments_are_the_schedulers(in_scheduler, monkeypatch):
    assert len(listeners.scheduler_listeners()) == 1
    monkeypatch.setattr(listeners, "_scheduler_pid", os.getpid() + 1)  # as a fork sees it
    assert listeners.scheduler_listeners() == []


def test_a_task_in_the_schedulers_process_neither_starts_nor_stops_it(in_scheduler):
    (listener,) = listeners.scheduler_listeners()
    listener.on_starting(TaskRunnerMarker())
    assert FakeSupervisor.running == 0
    listener.on_starting(Job())
    listener.before_stopping(TaskRunnerMarker())
    assert FakeSupervisor.running == 1
    listener.before_stopping(Job())


def test_a_fork_neither_stops_its_parents_controller(in_scheduler, monkeypatch):
    (listener,) = listeners.scheduler_listeners()
    listener.on_starting(Job())
    monkeypatch.setattr(os, "getpid", lambda: 1)
    listener.before_stopping(Job())
    assert FakeSupervisor.running == 1


def test_a_fork_takes_the_listener_out_of_the_manager_that_it_inherits(in_scheduler):
    # DAGs with end_from_trigger fail to import where any listener is registered.
    airflow_listener.get_listener_manager.cache_clear()
    manager = airflow_listener.get_listener_manager()
    manager.clear()
    (listener,) = listeners.scheduler_listeners()
    manager.add_listener(listener)
    assert manager.has_listeners
    listeners._unregister()
    assert not manager.has_listeners
    airflow_listener.get_listener_manager.cache_clear()
