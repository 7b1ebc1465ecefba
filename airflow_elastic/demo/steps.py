"""Step functions of time and their integrals."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable

__all__ = ["Steps", "integral"]


class Steps:
    """A value that changes at given moments (Unix seconds) and holds in between; ``before`` until the first one."""

    __slots__ = ("_before", "_times", "_values")

    def __init__(self, changes: Iterable[tuple[float, float]] = (), before: float = 0.0) -> None:
        ordered = sorted(changes, key=lambda change: change[0])
        self._times = [time for time, _ in ordered]
        self._values = [value for _, value in ordered]
        self._before = before

    @classmethod
    def counting(cls, intervals: Iterable[tuple[float, float]]) -> Steps:
        """Return how many of the intervals [from, until) hold at each moment."""
        deltas: dict[float, int] = {}
        for start, end in intervals:
            if end > start:
                deltas[start] = deltas.get(start, 0) + 1
                deltas[end] = deltas.get(end, 0) - 1
        changes, count = [], 0
        for time in sorted(deltas):
            count += deltas[time]
            changes.append((time, float(count)))
        return cls(changes)

    @property
    def times(self) -> list[float]:
        """Return the moments of change, sorted."""
        return self._times

    def at(self, time: float) -> float:
        """Return the value that holds at a moment (the one set last, where two changes fall together)."""
        index = bisect_right(self._times, time)
        return self._values[index - 1] if index else self._before


def integral(value: Callable[..., float], parts: Iterable[Steps], start: float, end: float) -> float:
    """Return ∫ value(part₁(t), part₂(t), …) dt over [start, end)."""
    parts = list(parts)
    moments = sorted({start, *(time for part in parts for time in part.times if start < time < end)})
    total = 0.0
    for index, moment in enumerate(moments):
        until = moments[index + 1] if index + 1 < len(moments) else end
        total += value(*(part.at(moment) for part in parts)) * max(0.0, until - moment)
    return total
