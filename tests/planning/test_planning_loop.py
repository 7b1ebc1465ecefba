"""The planner at work: what its decisions, one after the other, add up to."""

from __future__ import annotations

import pytest
from planning_loop import Loop, with_cooldown
from planning_worlds import dag, task

from airflow_elastic.model.reservation import ReservationState

ETL = dag(
    "etl",
    task("extract", seconds=40, q10=30, q90=52),
    *[task(f"load{i}", ["extract"], 60, q10=46, q90=78) for i in range(14)],
    task("join", [f"load{i}" for i in range(14)], 120, q10=92, q90=156),
    task("publish", ["join"], 60, q10=46, q90=78),
)
"""1 node, then 4, then 1: the tail holds one node for three quarters of the run."""


@pytest.mark.parametrize("seed", range(3))
def test_scheduled_runs_find_their_nodes_and_give_them_back(seed):
    loop = Loop(ETL, [200.0, 1400.0], spread=1.3, seed=seed).run(2400)
    assert all(task.state.is_finished for tasks in loop.runs.values() for task in tasks.values())
    assert len(loop.runs) == 2
    waits = {run: [seconds for each, _, seconds in loop.waits if each == run] for run in loop.runs}
    for run, seconds in waits.items():
        first = next(wait for each, task_id, wait in loop.waits if each == run and task_id == "extract")
        assert first <= 1.0
        assert sum(wait > 10.0 for wait in seconds) == 0, (run, seconds)
    assert loop.nodes == {}
    assert (loop.desired, loop.slots) == (0, 0)
    assert loop.phantom_seconds == 0.0
    assert loop.reservations == ()
    assert loop.flips <= 7  # out and in: for the run, for its fan-out; twice
    # Boot, lead and hold cost something; standing all day (2,400 s of 4 nodes) would cost three times as much.
    assert loop.node_seconds <= 2.2 * loop.busy_seconds


def test_nodes_go_while_the_run_goes_on():
    loop = Loop(ETL, [100.0], spread=1.0, settings=with_cooldown(0.0)).run(360)
    tasks = loop.runs["run100"]
    assert not tasks["publish"].state.is_finished
    assert len(loop.nodes) == 1
    assert loop.reservations[0].state is ReservationState.IN_USE


def test_an_unforeseen_run_gets_its_nodes_from_zero():
    loop = Loop(ETL, [], spread=1.0)
    loop.run(50)
    assert loop.orders == []
    loop.starts.append(50.0)  # triggered by hand, this very moment
    loop.run(500)
    assert all(task.state.is_finished for task in loop.runs["run50"].values())
    first = next(wait for _, task_id, wait in loop.waits if task_id == "extract")
    assert 20.0 <= first <= 62.0  # a boot, and not more
    assert max(wait for _, task_id, wait in loop.waits if task_id != "extract") <= 30.0
    assert loop.nodes == {}


def test_a_restart_of_the_controller_doubles_and_leaves_nothing():
    loop = Loop(ETL, [100.0], spread=1.0)
    loop.run(60)
    assert loop.desired == 1
    memory, loop.memory = loop.memory, type(loop.memory)()
    assert memory != loop.memory
    loop.run(60)
    assert (loop.desired, loop.count) == (4, 4)  # by now the fan-out is near
    loop.run(600)
    assert (loop.nodes, loop.count) == ({}, 4)


def test_back_to_back_runs_keep_their_nodes():
    often = dag("often", *[task(f"t{i}", seconds=30, q10=25, q90=36) for i in range(4)])
    loop = Loop(often, [100.0 + 60.0 * i for i in range(10)], spread=1.1).run(900)
    assert max(seconds for _, _, seconds in loop.waits) <= 1.0
    assert loop.flips <= 1  # up before the first run, down after the last
    assert loop.nodes == {}
