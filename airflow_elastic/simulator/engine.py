"""Simulated time: a heap of events."""

from __future__ import annotations

import heapq
from collections.abc import Callable

__all__ = ["Engine"]

_Event = tuple[float, int, Callable[..., None], tuple[object, ...]]


class Engine:
    """Calls functions at their time, in order of time and then of registration."""

    def __init__(self, now: float) -> None:
        self.now = now
        self.events = 0
        """How many events were handled."""
        self._heap: list[_Event] = []
        self._order = 0

    def at(self, when: float, call: Callable[..., None], *arguments: object) -> None:
        """Call a function at a time; a time in the past means now."""
        self._order += 1
        heapq.heappush(self._heap, (max(when, self.now), self._order, call, arguments))

    def next_at(self) -> float | None:
        """Return when the next event is due, None when nothing more will happen."""
        return self._heap[0][0] if self._heap else None

    def run_moment(self) -> bool:
        """Handle all events of the next moment; return False when there is none."""
        if not self._heap:
            return False
        self.now = self._heap[0][0]
        while self._heap and self._heap[0][0] <= self.now:
            _, _, call, arguments = heapq.heappop(self._heap)
            self.events += 1
            call(*arguments)
        return True
