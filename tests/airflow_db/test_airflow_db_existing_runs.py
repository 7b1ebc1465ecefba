"""Active and queued runs with their task instances, and what a run asks for itself."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, task
from airflow_db_helpers import FixedProfiles, MakeReader, carrier, seconds, start_run, write_dags

from airflow_elastic.airflow_db import existing_runs
from airflow_elastic.model.demand import RunAnnotation, RunPhase, TaskState

NOW = seconds(2026, 5, 1, 12)


def two_tasks(dag_id: str = "two", **options: Any) -> DAG:
    with DAG(dag_id, schedule=None, is_paused_upon_creation=False, **options) as dag:
        first = BashOperator(task_id="first", bash_command="true", executor_config=carrier(), pool="burst")
        first >> BashOperator(task_id="second", bash_command="true", executor_config=carrier(), pool="burst")
    return dag


def change(session: Any, run: Any, task_id: str, **values: Any) -> None:
    instance = next(each for each in run.task_instances if each.task_id == task_id)
    for name, value in values.items():
        setattr(instance, name, value)
    session.commit()


def test_an_active_run_has_its_task_instances(session: Any, make_reader: MakeReader) -> None:
    write_dags(session, two_tasks())
    run = start_run(session, "two", "manual__1")
    change(
        session, run, "first", state="running", try_number=2,
        start_date=datetime(2026, 5, 1, 11, 59, tzinfo=UTC), scheduled_dttm=datetime(2026, 5, 1, 11, 58, tzinfo=UTC),
    )  # fmt: skip
    (found,) = make_reader().read(NOW).runs
    assert (found.dag_id, found.run_id, found.phase) == ("two", "manual__1", RunPhase.ACTIVE)
    assert found.starts_at == run.start_date.timestamp()
    first, second = found.tasks
    assert (first.task_id, first.map_index, first.state, first.try_number) == ("first", -1, TaskState.RUNNING, 2)
    assert (first.started_at, first.ready_at) == (seconds(2026, 5, 1, 11, 59), seconds(2026, 5, 1, 11, 58))
    assert (second.state, second.started_at, second.ready_at, second.resumes) == (TaskState.NONE, None, None, False)
    assert [spec.task_id for spec in found.shape.tasks] == ["first", "second"]
    assert found.annotation is None


def test_finished_runs_and_foreign_dags_are_not_read(session: Any, make_reader: MakeReader) -> None:
    with DAG("foreign", schedule=None) as foreign:
        BashOperator(task_id="t", bash_command="true")
    write_dags(session, two_tasks(), foreign)
    start_run(session, "two", "done", state="success")
    start_run(session, "foreign", "running")
    assert make_reader().read(NOW).runs == ()


def test_only_a_deferred_task_on_its_way_back_resumes(session: Any, make_reader: MakeReader) -> None:
    write_dags(session, two_tasks())
    run = start_run(session, "two", "manual__1")
    change(session, run, "first", state="deferred", next_method="execute_complete")
    reader = make_reader()

    def first() -> Any:
        return reader.read(NOW).runs[0].tasks[0]

    assert (first().state, first().resumes) == (TaskState.DEFERRED, False)
    change(session, run, "first", state="scheduled")
    assert (first().state, first().resumes) == (TaskState.SCHEDULED, True)
    change(session, run, "first", state="queued")
    assert (first().state, first().resumes) == (TaskState.QUEUED, True)
    change(session, run, "first", state="running")
    assert (first().state, first().resumes) == (TaskState.RUNNING, True), "a worker closes it: no need for a node"
    change(session, run, "first", state="scheduled", next_method=None)
    assert (first().state, first().resumes) == (TaskState.SCHEDULED, False)


def test_a_queued_run_starts_no_sooner_than_it_may(session: Any, make_reader: MakeReader) -> None:
    write_dags(session, two_tasks())
    start_run(session, "two", "later", state="queued", run_after=datetime(2100, 1, 1, tzinfo=UTC))
    now = start_run(session, "two", "now", state="queued", run_after=datetime(2026, 1, 1, tzinfo=UTC))
    first, second = make_reader().read(NOW).runs
    assert (first.run_id, first.phase, first.starts_at) == ("now", RunPhase.QUEUED, now.queued_at.timestamp())
    assert (second.run_id, second.starts_at) == ("later", seconds(2100, 1, 1))


def test_a_run_s_own_annotation_goes_before_the_dag_s(session: Any, make_reader: MakeReader) -> None:
    write_dags(session, two_tasks(params={"elastic": {"nodes": 2}}), two_tasks("plain"))
    start_run(session, "two", "default")
    start_run(session, "two", "own", conf={"elastic": {"nodes": 5}, "x": 1})
    start_run(session, "plain", "none", conf={"x": 1})
    found = {run.run_id: run.annotation for run in make_reader().read(NOW).runs}
    assert found == {"default": RunAnnotation(nodes=2), "own": RunAnnotation(nodes=5), "none": None}


def test_a_coming_run_has_the_dag_s_annotation(session: Any, make_reader: MakeReader) -> None:
    with DAG(
        "daily", schedule="@daily", start_date=datetime(2026, 5, 1), catchup=True, params={"elastic": {"nodes": 4}},
        is_paused_upon_creation=False,
    ) as dag:  # fmt: skip
        BashOperator(task_id="t", bash_command="true", executor_config=carrier())
    write_dags(session, dag)
    (run,) = make_reader().read(seconds(2026, 5, 1)).runs
    assert run.annotation == RunAnnotation(nodes=4)


def test_mapped_instances_are_told_apart(session: Any, make_reader: MakeReader) -> None:
    with DAG("mapped", schedule=None) as dag:

        @task(executor_config=carrier(), pool="burst")
        def each(number: int) -> int:
            return number

        each.expand(number=[1, 2, 3])
    write_dags(session, dag)
    start_run(session, "mapped", "manual__1")
    (run,) = make_reader().read(NOW).runs
    assert [instance.map_index for instance in run.tasks] == [0, 1, 2]


def test_paused_and_backfill_runs_say_so(session: Any, make_reader: MakeReader) -> None:
    from airflow.models.dag import DagModel

    write_dags(session, two_tasks())
    start_run(session, "two", "backfill__1", run_type="backfill")
    session.get(DagModel, "two").is_paused = True
    session.commit()
    (run,) = make_reader().read(NOW).runs
    assert run.is_backfill
    assert run.shape.is_paused


def test_instances_of_tasks_that_are_gone_are_left_out(session: Any, make_reader: MakeReader) -> None:
    write_dags(session, two_tasks())
    start_run(session, "two", "manual__1")
    with DAG("two", schedule=None) as shorter:
        BashOperator(task_id="first", bash_command="true", executor_config=carrier(), pool="burst")
    write_dags(session, shorter)
    (run,) = make_reader().read(NOW).runs
    assert [instance.task_id for instance in run.tasks] == ["first"]


def test_shapes_are_the_same_objects_until_something_changes(session: Any, make_reader: MakeReader) -> None:
    profiles = FixedProfiles(100.0)
    write_dags(session, two_tasks())
    start_run(session, "two", "a")
    start_run(session, "two", "b")
    reader = make_reader(profiles=profiles)
    first, second = reader.read(NOW).runs
    assert first.shape is second.shape
    assert reader.read(NOW + 60).runs[0].shape is first.shape
    profiles.seconds = 200.0
    assert reader.read(NOW + 61).runs[0].shape is first.shape
    assert reader.read(NOW + 120).runs[0].shape.tasks[0].duration.q50_seconds == 200.0


def test_what_is_too_much_is_cut_with_a_word(session: Any, make_reader: MakeReader, monkeypatch: Any) -> None:
    write_dags(session, two_tasks())
    for number in range(4):
        start_run(session, "two", f"run_{number}")
    monkeypatch.setattr(existing_runs, "MOST_RUNS", 3)
    monkeypatch.setattr(existing_runs, "MOST_TASK_INSTANCES", 4)
    view = make_reader().read(NOW)
    assert [(run.run_id, len(run.tasks)) for run in view.runs] == [("run_0", 2), ("run_1", 2), ("run_2", 0)]
    assert sum("more than 3 DAG runs" in problem for problem in view.problems) == 1
    assert sum("more than 4 task instances" in problem for problem in view.problems) == 1


def test_history_gives_the_last_successes_of_relevant_dags(session: Any, make_reader: MakeReader) -> None:
    write_dags(session, two_tasks())
    for number in range(3):
        run = start_run(session, "two", f"run_{number}", state="success")
        change(session, run, "first", state="success", duration=10.0 + number,
               end_date=datetime(2026, 4, 20 + number, tzinfo=UTC))  # fmt: skip
        change(session, run, "second", state="failed", duration=99.0, end_date=datetime(2026, 4, 20, tzinfo=UTC))
    reader = make_reader()
    found = [(dag_id, task_id, taken) for dag_id, task_id, taken, _ in reader.history(NOW)]
    assert found == [("two", "first", 10.0), ("two", "first", 11.0), ("two", "first", 12.0)]
    assert [taken for _, _, taken, _ in reader.history(NOW, limit_days=9.6)] == [12.0]
