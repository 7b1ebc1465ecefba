"""What the demo lets happen: DAGs begin one after the other and, with ``--once``, end after two runs each."""

from __future__ import annotations

import time
from collections.abc import Callable

from airflow_elastic.demo.airflow_api import AirflowApi
from airflow_elastic.demo.measurement import RunRow
from airflow_elastic.demo.observer import Observer
from airflow_elastic.errors import TemporaryError

__all__ = ["RUNS_OF_EACH", "Scenario"]

RUNS_OF_EACH = 2
SETTLE_SECONDS = 60.0
_UNPAUSE_EVERY_SECONDS = 2.0


class Scenario:
    """Moves a started stack along; ``show`` gets a headline at each look, ``check`` raises where a part has died."""

    def __init__(
        self,
        api: AirflowApi,
        observer: Observer,
        *,
        check: Callable[[], None],
        show: Callable[[str], None],
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._observer = observer
        self._check = check
        self._show = show
        self._sleep = sleep
        self._clock = clock
        self._paused = sorted(api.dag_ids())
        self._dags = set(self._paused)
        self._done: set[str] = set()

    def run_for_ever(self) -> None:
        """Let the DAGs run until Ctrl-C."""
        next_at = 0.0
        while True:
            next_at = self._look(next_at)
            self._show(f"{sum(self._observer.finished_runs().values())} runs finished, Ctrl-C ends")

    def run_once(self, deadline: float) -> list[str]:
        """Let two scheduled runs of each DAG finish, pausing each DAG then, and wait for the nodes to go.

        Returns what did not come to its end before ``deadline`` (in the clock's seconds).
        """
        next_at = 0.0
        while self._done != self._dags:
            if self._clock() >= deadline:
                return self._unfinished()
            next_at = self._look(next_at)
            finished = self._observer.finished_runs()
            for dag_id in sorted(self._dags - self._done):
                # A run that began meanwhile comes to its end first: a paused DAG's run would stand still.
                if finished[dag_id] >= RUNS_OF_EACH and not self._active(dag_id) and self._pause(dag_id, True):
                    self._done.add(dag_id)
            count = sum(min(RUNS_OF_EACH, finished[dag_id]) for dag_id in self._dags)
            self._show(f"{count} of {RUNS_OF_EACH * len(self._dags)} runs finished")
        settled_by = self._clock() + SETTLE_SECONDS
        while not self._observer.at_rest() and self._clock() < settled_by:
            self._show("all runs finished; waiting for the nodes to go")
            self._look(float("inf"))
        return []

    def _look(self, next_unpause_at: float) -> float:
        """Unpause a DAG if it is time, then look; return when the next one is due."""
        self._check()
        if self._paused and self._clock() >= next_unpause_at and self._pause(self._paused[0], False):
            self._paused.pop(0)
            next_unpause_at = self._clock() + _UNPAUSE_EVERY_SECONDS
        self._sleep(0.5)
        try:
            self._observer.refresh(decisions=8)
        except TemporaryError:
            pass  # a busy database; the next look comes soon
        return next_unpause_at

    def _pause(self, dag_id: str, paused: bool) -> bool:
        try:
            self._api.pause(dag_id, paused)
        except TemporaryError:
            return False  # a busy API server; tried again at the next look
        return True

    def _active(self, dag_id: str) -> list[RunRow]:
        return [run for run in self._observer.runs if run.dag_id == dag_id and not run.is_finished]

    def _unfinished(self) -> list[str]:
        finished = self._observer.finished_runs()
        said = []
        for dag_id in sorted(self._dags - self._done):
            runs = [
                f"{run.run_id} is {run.state} {self._observer.states.get((dag_id, run.run_id), {})}"
                for run in self._active(dag_id)
            ]
            said.append("; ".join([f"{dag_id}: {finished[dag_id]} of {RUNS_OF_EACH} runs", *runs]))
        return said
