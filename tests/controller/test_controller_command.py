from __future__ import annotations

import argparse
import json
import os
import signal
import threading
import time

import pytest

from airflow_elastic.cli.commands import controller as command
from airflow_elastic.controller.loop import Controller, Tick
from airflow_elastic.controller.supervisor import PARENT_VARIABLE
from airflow_elastic.errors import ConfigurationError


@pytest.fixture(autouse=True)
def signals_as_before(monkeypatch):
    monkeypatch.delenv(PARENT_VARIABLE, raising=False)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def arguments(once=False, output="json"):
    return argparse.Namespace(once=once, output=output)


def test_once_makes_one_tick_prints_the_plan_and_gives_the_lead_up(make_world, monkeypatch, capsys):
    world = make_world(nodes=1)
    monkeypatch.setattr(command, "build_controller", lambda: world.controller())
    command.run(arguments(once=True))
    document = json.loads(capsys.readouterr().out)
    assert document["leads"] is True
    assert [each["usable_nodes"] for each in document["node_pools"]] == [1]
    assert {action["kind"] for action in document["actions"]} <= {"slots", "nodes"}
    assert not world.leader.is_held

    command.run(arguments(once=True, output="table"))
    assert "mode manage" in capsys.readouterr().out


def test_once_beside_a_leader_says_so(make_world, monkeypatch, capsys):
    world = make_world()
    world.leader.is_taken = True
    monkeypatch.setattr(command, "build_controller", lambda: world.controller())
    command.run(arguments(once=True))
    assert json.loads(capsys.readouterr().out) == {
        "leads": False, "sentence": "nothing was done: another controller leads"
    }  # fmt: skip
    command.run(arguments(once=True, output="table"))
    assert "another controller leads" in capsys.readouterr().out


def test_sigterm_ends_it_cleanly_and_leaves_the_capacity(make_world, monkeypatch):
    world = make_world(nodes=1)
    world.airflow.runs = ()
    made: list[Controller] = []

    def build():
        made.append(world.controller())
        return made[0]

    def end_when_leading():
        while not (world.leader.is_held and world.memory.status_writes):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(command, "build_controller", build)
    ender = threading.Thread(target=end_when_leading)
    ender.start()
    command.run(arguments())
    ender.join()
    assert not world.leader.is_held


def test_without_a_cluster_the_command_ends_and_a_supervised_one_waits(monkeypatch):
    def build():
        raise ConfigurationError("no cluster is configured")

    monkeypatch.setattr(command, "build_controller", build)
    with pytest.raises(ConfigurationError):
        command.run(arguments())
    stopping = threading.Event()
    threading.Timer(0.1, stopping.set).start()
    assert command._build(stopping, patiently=True) is None


def test_a_tick_without_a_plan_has_a_document():
    assert "not certain" in command._document(Tick(why_not="it is not certain yet who leads"))["sentence"]
