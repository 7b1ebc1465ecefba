"""Samples the metadata DB while the demo runs: slots of Airflow pools, nodes held by reservations."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

from airflow_elastic.demo.database import Database
from airflow_elastic.errors import TemporaryError

__all__ = ["Sampler"]

_HOLDING = ("requested", "warming", "ready", "in_use")
Sample = tuple[float, dict[str, int]]


class Sampler:
    """A thread with a connection of its own, outside Airflow's session machinery; five looks a second.

    Kept in memory and, one JSON line per change, in a file.
    """

    def __init__(self, database: Database, path: Path, *, seconds: float = 0.2) -> None:
        self.slots: list[Sample] = []
        self.reserved: list[Sample] = []
        self.looks = 0
        self._database = database
        self._path = path
        self._seconds = seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, after one last look."""
        if not self._stopping.is_set():
            self._stopping.set()
            self._thread.join(timeout=5)
            self._database.close()

    def _run(self) -> None:
        with self._path.open("a", buffering=1) as file:
            while True:
                last = self._stopping.wait(self._seconds)
                self._look(self.slots, self._read_slots, "slots", file.write)
                self._look(self.reserved, self._read_reserved, "reserved", file.write)
                self.looks += 1
                if last:
                    return

    def _look(
        self, kept: list[Sample], read: Callable[[], dict[str, int]], kind: str, write: Callable[[str], object]
    ) -> None:
        before = time.time()
        try:
            values = read()
        except TemporaryError:
            return  # locked or not there yet: the last value holds until the next look
        if not kept or kept[-1][1] != values:
            kept.append((before, values))
            write(json.dumps({"t": before, "kind": kind, "values": values}) + "\n")

    def _read_slots(self) -> dict[str, int]:
        return dict(self._database.rows("SELECT pool, slots FROM slot_pool"))

    def _read_reserved(self) -> dict[str, int]:
        marks = ", ".join("?" for _ in _HOLDING)
        statement = f"SELECT node_pool, SUM(nodes) FROM elastic_reservation WHERE state IN ({marks}) GROUP BY node_pool"
        return {pool: int(nodes) for pool, nodes in self._database.rows(statement, _HOLDING)}
