from __future__ import annotations

import itertools
import random

import pytest
from simulator_worlds import SHAPE, fan_out

from airflow_elastic.model.resources import Resources
from airflow_elastic.simulator.optimum import IdealTask, ideal_course, lower_bound_1, nodes_over_time, opt_0
from airflow_elastic.simulator.workload import DagTemplate, PlannedRun, TaskTemplate


def cheapest(need: list[int], boot: int) -> int:
    """The linear program's optimum for unit slots by trying every course of the number of nodes.

    min Σ y_t + B Σ u_t with y_t ≥ D_t, u_t ≥ y_t − y_{t−1}.
    """
    top = max(need)
    best: dict[int, int] = {0: 0}
    for wanted in need:
        best = {
            nodes: min(cost + nodes + boot * max(nodes - before, 0) for before, cost in best.items())
            for nodes in range(wanted, top + 1)
        }
    return min(best.values())


@pytest.mark.parametrize("boot", [0, 1, 2, 5])
def test_opt_0_is_the_optimum_of_the_linear_program(boot: int) -> None:
    chance = random.Random(boot)
    for _ in range(60):
        need = [chance.randrange(4) for _ in range(chance.randrange(1, 9))]
        if not any(need):
            continue
        steps = [(float(t), nodes) for t, nodes in enumerate([*need, 0])]
        assert opt_0(steps, boot) == pytest.approx(cheapest(need, boot)), need


def test_opt_0_of_every_short_course() -> None:
    for need in itertools.product(range(3), repeat=5):
        if any(need):
            steps = [(float(t), nodes) for t, nodes in enumerate([*need, 0])]
            assert opt_0(steps, 2) == pytest.approx(cheapest(list(need), 2)), need


def test_nodes_follow_the_scarcest_resource() -> None:
    wide = Resources.of(cpu=1000, memory=8 * 2**30, pods=1)
    tasks = [IdealTask(0.0, 10.0, wide, ""), IdealTask(0.0, 20.0, wide, ""), IdealTask(5.0, 10.0, wide, "")]
    assert nodes_over_time(tasks, SHAPE) == [(0.0, 1), (5.0, 2), (10.0, 1), (20.0, 0)]
    assert lower_bound_1(tasks, SHAPE) == pytest.approx(35.0 * 0.5)


def test_ideal_course_keeps_the_limit_of_tasks() -> None:
    dag = fan_out(8, 100.0, max_active_tasks=4)
    run = PlannedRun(dag, "r", 0.0, tuple(task.seconds for task in dag.tasks))
    course = ideal_course([run], start_seconds=2.0, finish_seconds=1.0)
    work = sorted(task.start for task in course.tasks if task.end - task.start == 100.0)
    assert work == [25.0] * 4 + [128.0] * 4
    assert course.run_ends == (262.0,)


def test_ideal_course_keeps_the_limit_of_runs() -> None:
    dag = DagTemplate("one", (TaskTemplate("t", (), 100.0),), max_active_runs=1)
    runs = [PlannedRun(dag, f"r{i}", 10.0 * i, (100.0,)) for i in range(3)]
    course = ideal_course(runs, start_seconds=0.0, finish_seconds=0.0)
    assert [task.start for task in course.tasks] == [0.0, 100.0, 200.0]
