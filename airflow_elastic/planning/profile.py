"""What tasks and node boots took so far, as decayed quantiles with priors for what was never seen.

For each (dag, task, class) the latest observations are kept, the newest weighing most: half as much after
``HALF_LIFE`` further ones. A task of which too little is known leans on what is known of it whatever its class (the
class ``""``: history from before classes), then on its DAG, on the whole installation, and on the configured default,
so that a new DAG gets a guess on its first day.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from airflow_elastic.model.demand import DurationEstimate
from airflow_elastic.model.node_pool import NodePool

__all__ = ["Profiles"]

MOST_SAMPLES = 50
"""Observations kept of one task or pool."""
MOST_WIDE_SAMPLES = 200
"""Observations kept of a DAG and of the installation: the priors."""
MOST_KEYS = 100_000
HALF_LIFE = 15.0
ENOUGH_SAMPLES = 5
"""From this many observations on, a task's own figures stand alone; below, they are mixed with those behind them."""
_LONGEST_SECONDS = 30 * 86400.0
_VERSION = 1
_Samples = tuple[float, ...]


def _quantile(pairs: list[tuple[float, float]], share: float) -> float:
    """Return a quantile of weighted (value, weight) pairs, sorted by value, in between by straight lines."""
    total = sum(weight for _, weight in pairs)
    points: list[tuple[float, float]] = []
    before = 0.0
    for value, weight in pairs:
        points.append(((before + weight / 2) / total, value))
        before += weight
    if share <= points[0][0]:
        return points[0][1]
    for (low, low_value), (high, high_value) in pairwise(points):
        if share <= high:
            return low_value + (high_value - low_value) * (share - low) / (high - low)
    return points[-1][1]


def _estimate(samples: _Samples, behind: DurationEstimate | None) -> DurationEstimate:
    """Return quantiles of one or more samples (oldest first), mixed with what lies behind them while they are few."""
    newest = len(samples) - 1
    pairs = [(value, 0.5 ** ((newest - i) / HALF_LIFE)) for i, value in enumerate(samples)]
    if behind is not None and len(samples) < ENOUGH_SAMPLES:
        # What lies behind counts as the missing observations; its scale is fitted to the few that there are, because
        # how far tasks scatter is alike within an installation, and how long they take is not.
        middle = sorted(samples)[len(samples) // 2]
        scale = middle / behind.q50_seconds if behind.q50_seconds > 0 else 1.0
        share = (ENOUGH_SAMPLES - len(samples)) / 3.0
        pairs += [(q * scale, share) for q in (behind.q10_seconds, behind.q50_seconds, behind.q90_seconds)]
    pairs.sort()
    q10, q50, q90 = (_quantile(pairs, share) for share in (0.1, 0.5, 0.9))
    return DurationEstimate(q10, q50, q90, len(samples))


def _valid(seconds: float) -> bool:
    return math.isfinite(seconds) and 0.0 <= seconds <= _LONGEST_SECONDS


@dataclass(slots=True)
class Profiles:
    """Observed durations, widths of mapped tasks and boot times; bounded in size and storable as JSON.

    Estimates are remembered until the next observation that could change them, and are then the very same objects, so
    that whoever builds DAG structures from them sees at once that nothing changed.
    """

    default_seconds: float = 300.0
    _tasks: dict[tuple[str, str, str], _Samples] = field(default_factory=dict)
    _dags: dict[str, _Samples] = field(default_factory=dict)
    _all: _Samples = ()
    _boots: dict[str, _Samples] = field(default_factory=dict)
    _widths: dict[tuple[str, str], tuple[int, ...]] = field(default_factory=dict)
    _latest: dict[tuple[str, str, str], float] = field(default_factory=dict)
    _remembered: dict[tuple[str, str, str], DurationEstimate] = field(default_factory=dict)

    @classmethod
    def empty(cls, default_seconds: float) -> Profiles:
        """Return a store without observations; ``default_seconds`` is the guess for a task of a new installation."""
        return cls(default_seconds)

    def observe(self, dag_id: str, task_id: str, capacity_class: str, seconds: float, finished_at: float) -> None:
        """Note that a task succeeded after running ``seconds`` (waiting not counted).

        The same observation twice (same task, same or earlier ``finished_at`` with the same length) is not counted
        again; out-of-order ones are taken as they come.
        """
        if not _valid(seconds) or not math.isfinite(finished_at):
            return
        key = (dag_id, task_id, capacity_class)
        samples = self._tasks.get(key, ())
        if samples and finished_at == self._latest.get(key) and samples[-1] == seconds:
            return
        if key not in self._tasks and len(self._tasks) >= MOST_KEYS:
            self._forget()
        self._latest[key] = max(finished_at, self._latest.get(key, finished_at))
        self._tasks[key] = (*samples, seconds)[-MOST_SAMPLES:]
        is_new_prior = len(samples) < ENOUGH_SAMPLES
        self._dags[dag_id] = (*self._dags.get(dag_id, ()), seconds)[-MOST_WIDE_SAMPLES:]
        self._all = (*self._all, seconds)[-MOST_WIDE_SAMPLES:]
        # Priors move slowly; what leans on them is worked out again with its own next observation.
        self._remembered.pop(key, None)
        if is_new_prior or not capacity_class:
            for other in [each for each in self._remembered if each[0] == dag_id]:
                self._remembered.pop(other)

    def _forget(self) -> None:
        """Drop the tenth that was longest not seen."""
        oldest = sorted(self._latest, key=lambda key: (self._latest[key], key))
        for key in oldest[: max(len(oldest) // 10, 1)]:
            self._tasks.pop(key, None)
            self._latest.pop(key, None)
            self._remembered.pop(key, None)

    def estimate(self, dag_id: str, task_id: str, capacity_class: str) -> DurationEstimate:
        """Return the expected duration of a task; ``samples`` counts its own observations (0: a prior)."""
        key = (dag_id, task_id, capacity_class)
        found = self._remembered.get(key)
        if found is None:
            found = self._work_out(key)
            if len(self._remembered) >= 2 * MOST_KEYS:
                self._remembered.clear()
            self._remembered[key] = found
        return found

    def _work_out(self, key: tuple[str, str, str]) -> DurationEstimate:
        behind = DurationEstimate(0.3 * self.default_seconds, self.default_seconds, 2.0 * self.default_seconds)
        own = self._tasks.get(key, ())
        wider = (self._all, self._dags.get(key[0], ()))
        for samples in wider:
            if len(samples) >= ENOUGH_SAMPLES:
                behind = _estimate(samples, None)
        classless = self._tasks.get((key[0], key[1], ""), ()) if key[2] else ()
        if classless:
            behind = _estimate(classless, behind)
            if not own:
                return behind
        if own:
            return _estimate(own, behind)
        return DurationEstimate(behind.q10_seconds, behind.q50_seconds, behind.q90_seconds)

    def observe_boot(self, node_pool: str, seconds: float) -> None:
        """Note that a node of the pool became usable ``seconds`` after it was asked for."""
        if _valid(seconds):
            self._boots[node_pool] = (*self._boots.get(node_pool, ()), seconds)[-MOST_SAMPLES:]

    def boot_estimate(self, node_pool: str, prior: NodePool) -> DurationEstimate:
        """Return the expected boot time of a pool; the capacity file's figures are the prior."""
        # The file has the median and the 95th percentile; the 90th lies at 1.28 / 1.64 of the way between them.
        q90 = prior.boot_seconds + 0.78 * max(prior.boot_seconds_p95 - prior.boot_seconds, 0.0)
        behind = DurationEstimate(0.7 * prior.boot_seconds, prior.boot_seconds, q90)
        seen = self._boots.get(node_pool)
        return _estimate(seen, behind) if seen else behind

    def observe_width(self, dag_id: str, task_id: str, width: int) -> None:
        """Note into how many instances a mapped task was expanded."""
        if 0 <= width <= 1_000_000:
            key = (dag_id, task_id)
            self._widths[key] = (*self._widths.get(key, ()), int(width))[-MOST_SAMPLES:]

    def width(self, dag_id: str, task_id: str) -> int:
        """Return the expected width of a mapped task (the median of the latest), 1 when it was never seen."""
        seen = sorted(self._widths.get((dag_id, task_id), ())[-10:])
        return seen[len(seen) // 2] if seen else 1

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain JSON."""
        return {
            "version": _VERSION,
            "default_seconds": self.default_seconds,
            "tasks": [
                [*key, round(self._latest.get(key, 0.0), 3), [round(each, 3) for each in samples]]
                for key, samples in sorted(self._tasks.items())
            ],
            "dags": {key: [round(each, 3) for each in samples] for key, samples in sorted(self._dags.items())},
            "all": [round(each, 3) for each in self._all],
            "boots": {key: [round(each, 3) for each in samples] for key, samples in sorted(self._boots.items())},
            "widths": [[*key, list(widths)] for key, widths in sorted(self._widths.items())],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Profiles:
        """Return the store that ``to_json`` described; entries that cannot be read are left out."""
        profiles = cls(_number(document.get("default_seconds")) or 300.0)
        for entry in _list(document.get("tasks")):
            if isinstance(entry, list | tuple) and len(entry) == 5:
                samples = _samples(entry[4], MOST_SAMPLES)
                if samples:
                    key = (str(entry[0]), str(entry[1]), str(entry[2]))
                    profiles._tasks[key] = samples
                    profiles._latest[key] = _number(entry[3]) or 0.0
        for name, wide, most in (("dags", profiles._dags, MOST_WIDE_SAMPLES), ("boots", profiles._boots, MOST_SAMPLES)):
            entries = document.get(name)
            for key_, values in entries.items() if isinstance(entries, Mapping) else ():
                if samples := _samples(values, most):
                    wide[str(key_)] = samples
        profiles._all = _samples(document.get("all"), MOST_WIDE_SAMPLES)
        for entry in _list(document.get("widths")):
            if isinstance(entry, list | tuple) and len(entry) == 3:
                for width in _samples(entry[2], MOST_SAMPLES):
                    profiles.observe_width(str(entry[0]), str(entry[1]), int(width))
        return profiles


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _list(value: object) -> Iterable[Any]:
    return value if isinstance(value, list | tuple) else ()


def _samples(values: object, most: int) -> _Samples:
    numbers = [_number(value) for value in _list(values)]
    return tuple(value for value in numbers if value is not None and _valid(value))[-most:]
