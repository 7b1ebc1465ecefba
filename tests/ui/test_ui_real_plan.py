"""The document of a real plan, as page and commands get it: the contract with planner and status document."""

from __future__ import annotations

import json

import pytest
from ui_builders import SHAPE, settings

from airflow_elastic.cli.commands import plan as plan_command
from airflow_elastic.cli.commands import status as status_command
from airflow_elastic.cli.output import console
from airflow_elastic.model.demand import (
    DagShape,
    DurationEstimate,
    Run,
    RunPhase,
    TaskInstance,
    TaskSpec,
    TaskState,
)
from airflow_elastic.model.resources import Resources
from airflow_elastic.model.settings import Mode
from airflow_elastic.model.snapshot import AirflowPool, Node, Snapshot
from airflow_elastic.model.status import ControllerInfo, status_document
from airflow_elastic.planning.planner import plan
from airflow_elastic.ui.explaining import explain_subject, known_subjects
from airflow_elastic.ui.published import Availability, Published
from airflow_elastic.ui.visibility import Veil

NOW = 1_800_000_000.0
REQUESTS = Resources.of(cpu=1000, memory=2**30, pods=1)


def spec(task_id: str, upstream: tuple[str, ...] = (), width: int = 1) -> TaskSpec:
    return TaskSpec(
        task_id, upstream, needs_node=True, capacity_class="burst", requests=REQUESTS, is_mapped=width > 1,
        mapped_width=width, pool="burst", duration=DurationEstimate(90, 120, 160, 5),
    )  # fmt: skip


@pytest.fixture(params=list(Mode))
def made(request: pytest.FixtureRequest) -> dict:
    wide = TaskSpec("wide", needs_node=True, capacity_class="burst", requests=Resources.of(cpu=64000))
    shape = DagShape("nightly_etl", (spec("a"), spec("b", ("a",), 9), spec("c", ("b",)), wide))
    tasks = (TaskInstance("a", state=TaskState.SUCCESS), *(TaskInstance("b", i, TaskState.SCHEDULED) for i in range(9)))
    runs = [Run("nightly_etl", f"scheduled__{i}", RunPhase.COMING, NOW + 60 + i * 900, shape) for i in range(4)]
    runs.append(Run("nightly_etl", "manual__1", RunPhase.ACTIVE, NOW - 50, shape, tasks))
    nodes = tuple(Node(f"elastic-{i}", "elastic", SHAPE, True, "", NOW - 500, NOW - 400) for i in range(2))
    snapshot = Snapshot(
        NOW, settings(request.param), nodes,
        airflow_pools=(AirflowPool("core", 8), AirflowPool("burst", 18, scheduled=9)), runs=tuple(runs),
    )  # fmt: skip
    document = status_document(snapshot, plan(snapshot), ControllerInfo("host:1", NOW - 5))
    return dict(json.loads(json.dumps(document, allow_nan=False)))


def test_everything_in_it_can_be_explained(made: dict) -> None:
    for subject in [*known_subjects(made), "manual__1", "nightly_etl manual__1", "nightly_etl.wide"]:
        answer = explain_subject(made, [], subject)
        assert answer["found"], subject
        assert answer["sentences"], subject
    assert any("never run" in sentence for sentence in explain_subject(made, [], "nightly_etl")["sentences"])
    assert any("needs 3 nodes" in sentence for sentence in explain_subject(made, [], "manual__1")["sentences"])


def test_the_commands_show_it(made: dict, capsys: pytest.CaptureFixture[str]) -> None:
    published = Published(Availability.LIVE, made, 0.2)
    console().print(status_command.tables(published))
    console().print(plan_command.tables(published))
    text = capsys.readouterr().out
    for word in ("elastic", "burst", "manual__1", "scheduled__3", "never run"):
        assert word in text


def test_nothing_of_a_hidden_dag_is_left_in_it(made: dict) -> None:
    seen = json.dumps(Veil.over(made, (), ()).over_value(made))
    for word in ("nightly_etl", "scheduled__", "manual__"):
        assert word not in seen
