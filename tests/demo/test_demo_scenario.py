from __future__ import annotations

from collections import Counter

import pytest

from airflow_elastic.demo.measurement import RunRow
from airflow_elastic.demo.scenario import SETTLE_SECONDS, Scenario
from airflow_elastic.errors import ElasticError, TemporaryError


class FakeWorld:
    """API, observer and clock in one. A run of a DAG takes ``run_seconds``; the next starts ``every`` seconds later."""

    def __init__(self, dags: tuple[str, ...] = ("a", "b"), *, run_seconds: float = 30.0, every: float = 60.0) -> None:
        self.now = 0.0
        self.dags = dags
        self.run_seconds = [run_seconds] * 3
        self.every = every
        self.unpaused_at: dict[str, float] = {}
        self.paused_at: dict[str, float] = {}
        self.rests_after = 10.0
        self.refusals = 0
        self.runs: list[RunRow] = []
        self.states: dict[tuple[str, str], dict[str, int]] = {}
        self.headlines: list[str] = []

    def dag_ids(self) -> set[str]:
        return set(self.dags)

    def pause(self, dag_id: str, paused: bool) -> None:
        if self.refusals:
            self.refusals -= 1
            raise TemporaryError("busy")
        (self.paused_at if paused else self.unpaused_at)[dag_id] = self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def refresh(self, *, decisions: int = 0) -> None:
        self.runs = []
        for dag_id, since in self.unpaused_at.items():
            until = self.paused_at.get(dag_id, float("inf"))
            for number in range(int((min(self.now, until) - since) // self.every) + 1):
                start = since + number * self.every
                ended = start + self.run_seconds[min(number, 2)] <= self.now
                state = "success" if ended else "running"
                self.runs.append(RunRow(dag_id, f"r{number}", "scheduled", state, start, start, None))

    def finished_runs(self) -> Counter[str]:
        return Counter(run.dag_id for run in self.runs if run.is_finished)

    def at_rest(self) -> bool:
        return len(self.paused_at) == len(self.dags) and self.now >= max(self.paused_at.values()) + self.rests_after

    def scenario(self, check=lambda: None) -> Scenario:
        return Scenario(self, self, check=check, show=self.headlines.append, sleep=self.sleep, clock=lambda: self.now)


def test_dags_begin_one_after_the_other_and_are_paused_after_two_runs() -> None:
    world = FakeWorld()
    assert world.scenario().run_once(deadline=1000.0) == []
    assert world.unpaused_at == {"a": 0.0, "b": 2.0}
    assert world.paused_at == {"a": 90.0, "b": 92.0}
    assert world.now == pytest.approx(102.0, abs=1.0)
    assert "3 of 4 runs finished" in world.headlines


def test_a_third_run_that_has_begun_is_let_finish_before_the_pause() -> None:
    world = FakeWorld(("a",), every=60.0)
    world.run_seconds = [30.0, 59.8, 20.0]  # the second ends just before the third begins
    world.scenario().run_once(deadline=1000.0)
    assert world.finished_runs()["a"] == 3
    assert world.paused_at["a"] == 140.0


def test_what_does_not_finish_is_said() -> None:
    world = FakeWorld(("a",), run_seconds=500.0)
    assert world.scenario().run_once(deadline=20.0) == ["a: 0 of 2 runs; r0 is running {}"]
    assert world.now < 25.0


def test_the_deadline_may_have_passed_already() -> None:
    assert FakeWorld(("a",)).scenario().run_once(deadline=-1.0) == ["a: 0 of 2 runs"]


def test_a_busy_api_is_asked_again() -> None:
    world = FakeWorld(("a",))
    world.refusals = 3
    assert world.scenario().run_once(deadline=1000.0) == []
    assert world.unpaused_at["a"] == 1.5


def test_nodes_that_do_not_go_are_waited_for_a_bounded_time() -> None:
    world = FakeWorld(("a",))
    world.rests_after = 1e9
    assert world.scenario().run_once(deadline=1000.0) == []
    assert world.now == pytest.approx(90.0 + SETTLE_SECONDS, abs=2.0)


def test_a_dead_part_ends_the_scenario() -> None:
    def check() -> None:
        raise ElasticError("scheduler ended with exit code 1")

    with pytest.raises(ElasticError, match="scheduler ended"):
        FakeWorld(("a",)).scenario(check).run_once(deadline=1000.0)
