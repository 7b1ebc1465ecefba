from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from airflow_elastic.errors import ConfigurationError
from airflow_elastic.model.demand import DagShape, TaskSpec
from airflow_elastic.simulator.generators import generated_noise, generated_workflows
from airflow_elastic.simulator.history import PastTask, workload_from_history
from airflow_elastic.simulator.mixes import MIXES, choose_workflows, recurring
from airflow_elastic.simulator.traces import Noise, NoisyDag, read_noise, read_workflows, traces_folder
from airflow_elastic.simulator.workload import DAY, EPOCH, priorities_of, topological

ROWS = """instance,task_id,task_name,runtime_s,avg_cpu_pct,memory_bytes,cores,machine,parents
w-001,merge,merge,30,,,,,part_1;part_2
w-001,part_1,part,10,,,,,split
w-001,part_2,part,20,,,,,split
w-001,split,split,0.1,,,,,
w-002,merge,merge,50,,,,,part_1;part_2
w-002,part_1,part,30,,,,,split
w-002,part_2,part,20,,,,,split
w-002,split,split,0.1,,,,,
"""
NOISE = "series,start,runtime_s\na,2024-01-01,10\na,2024-01-01,20\na,2024-01-01,40\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with gzip.open(tmp_path / "workflow_toy.csv.gz", "wt") as file:
        file.write(ROWS)
    (tmp_path / "vm_runtime_noise.csv").write_text(NOISE)
    return tmp_path


def test_repeats_are_one_workflow_in_topological_order(folder: Path) -> None:
    (recording,) = read_workflows(folder)
    assert (recording.family, recording.name, recording.repeats) == ("toy", "w", 2)
    tasks = recording.dag.tasks
    assert (tasks[0].task_id, tasks[-1].task_id) == ("split", "merge")
    assert {task.task_id: task.seconds for task in tasks} == {
        "split": 1.0,
        "part_1": 20.0,
        "part_2": 20.0,
        "merge": 40.0,
    }
    assert tasks[-1].upstream == (1, 2)


def test_families_that_are_not_there_are_named(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no trace of family rain in .*; it has toy"):
        read_workflows(folder, ["rain"])


def test_broken_traces_are_named(folder: Path) -> None:
    (folder / "workflow_bad.csv").write_text("instance,task_id\nx,y\n")
    with pytest.raises(ConfigurationError, match="workflow_bad"):
        read_workflows(folder, ["bad"])


def test_a_named_folder_must_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_ELASTIC_TRACES", str(tmp_path / "nowhere"))
    with pytest.raises(ConfigurationError, match="nowhere"):
        traces_folder()
    assert traces_folder(tmp_path) == tmp_path


def test_noise_is_relative_and_moves_with_time(folder: Path) -> None:
    noise = read_noise(folder)
    assert noise.series == ((0.5, 1.0, 2.0),)
    assert [noise.factor(0, 0, at) for at in (0.0, 2399.0, 2400.0, 4800.0, 7200.0)] == [0.5, 0.5, 1.0, 2.0, 0.5]
    assert Noise(()).factor(3, 5, 7.0) == 1.0


def test_a_task_has_its_own_course_of_noise(folder: Path) -> None:
    (recording,) = read_workflows(folder)
    dag = NoisyDag(recording.dag, read_noise(folder), seed=1)
    assert dag.seconds(EPOCH) == dag.seconds(EPOCH)
    assert len({dag.seconds(EPOCH + i * 2400.0) for i in range(3)}) == 3
    assert min(dag.seconds(EPOCH)) >= 1.0


@pytest.mark.parametrize("mix", MIXES)
def test_mixes_split_training_from_test(mix: str) -> None:
    recordings = generated_workflows(1)
    dags = choose_workflows(recordings, seed=1)
    workload = recurring("made up", dags, generated_noise(1), 1, days_train=2, days_test=1, mix=mix)
    assert len(dags) == 12
    assert max(run.starts_at for run in workload.training) < workload.starts_at <= workload.test[0].starts_at
    assert max(run.starts_at for run in workload.test) < workload.ends_at == workload.starts_at + DAY
    assert all(run.dag.max_active_tasks == 16 for run in workload.test)
    again = recurring("made up", dags, generated_noise(1), 1, days_train=2, days_test=1, mix=mix)
    assert [(run.starts_at, run.seconds) for run in workload.test] == [
        (run.starts_at, run.seconds) for run in again.test
    ]


def test_the_heaviest_dag_can_be_left_out() -> None:
    dags = choose_workflows(generated_workflows(1), seed=1)
    workload = recurring("made up", dags, Noise(()), 1, days_train=1, days_test=1)
    lighter = workload.without_heaviest()
    left_out = set(workload.dags) - set(lighter.dags)
    assert len(left_out) == 1
    assert left_out.pop().dag_id in lighter.name


def test_workflows_that_are_too_large_are_left_out() -> None:
    recordings = generated_workflows(1)
    assert all(len(dag.tasks) <= 50 for dag in choose_workflows(recordings, 1, most_tasks=50))
    with pytest.raises(ConfigurationError, match="no workflow has 1 tasks or fewer"):
        choose_workflows(recordings, 1, most_tasks=1)


def test_topological_order_and_circles() -> None:
    assert topological([[1], [], [0]]) == [1, 0, 2]
    with pytest.raises(ValueError, match="circle"):
        topological([[1], [0]])


def test_priority_weights_count_what_is_downstream() -> None:
    (fan,) = [each for each in generated_workflows(1) if each.name == "fanout-12"]
    weights = priorities_of(fan.dag)
    assert (weights[0], weights[1], weights[-1]) == (14, 2, 1)


SHAPE = DagShape(
    "etl",
    (
        TaskSpec("extract", needs_node=True),
        TaskSpec("check", upstream=("extract",)),
        TaskSpec("work", upstream=("check",), needs_node=True, is_mapped=True),
        TaskSpec("load", upstream=("work",), needs_node=True),
    ),
)


def past(day: int, width: int) -> list[PastTask]:
    def task(task_id: str, index: int, seconds: float) -> PastTask:
        return PastTask("etl", f"run_{day}", EPOCH + day * DAY, True, task_id, index, seconds)

    work = [task("work", i, 100.0 + i) for i in range(width)]
    return [task("load", -1, 30.0), *work, task("extract", -1, 10.0), task("check", -1, 1.0)]


def test_history_becomes_runs_with_widths_and_gaps_closed() -> None:
    rows = [row for day in range(4) for row in past(day, 2 + day)] + [PastTask("other", "x", EPOCH, True, "t", -1, 5.0)]
    workload = workload_from_history(rows, {"etl": SHAPE}, days_test=2)
    assert [len(run.seconds) for run in (*workload.training, *workload.test)] == [4, 5, 6, 7]
    assert len(workload.test) == 2
    dag = workload.test[-1].dag
    assert [task.task_id for task in dag.tasks] == ["extract", *["work"] * 5, "load"]
    assert dag.tasks[1].upstream == (0,)  # the check in between needs no node
    assert dag.tasks[-1].upstream == (1, 2, 3, 4, 5)
    assert workload.test[-1].seconds == (10.0, 100.0, 101.0, 102.0, 103.0, 104.0, 30.0)


def test_no_history_is_said() -> None:
    with pytest.raises(ValueError, match="no task of the past"):
        workload_from_history([], {"etl": SHAPE}, days_test=7)
