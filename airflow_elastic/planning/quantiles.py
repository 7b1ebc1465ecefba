"""Durations as three quantiles: what remains of a running one, the longest of many, other quantiles than the three.

Between the three quantiles the distribution is a line; beyond the 90th percentile it is an exponential tail, so a task
that runs longer than ever seen is expected to run on for a while, in proportion to how long it has run.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

from airflow_elastic.model.demand import DurationEstimate

__all__ = ["Z90", "boot_quantile", "early_factor", "longest_of", "normal_steps", "remaining", "sane"]

_NORMAL = NormalDist()
Z90 = _NORMAL.inv_cdf(0.9)
_LONGEST_SECONDS = 30 * 86400.0
_SHORTEST_SECONDS = 0.1
_TAIL_OF_ELAPSED = 0.1
_SHARES = (0.1, 0.5, 0.9)


def sane(estimate: DurationEstimate) -> tuple[float, float, float]:
    """Return (q10, q50, q90) in seconds: finite, in order, between 0.1 s and 30 days."""
    q50 = _bounded(estimate.q50_seconds, 60.0)
    q10 = min(_bounded(estimate.q10_seconds, q50), q50)
    q90 = max(_bounded(estimate.q90_seconds, q50), q50)
    return q10, q50, q90


def _bounded(seconds: float, otherwise: float) -> float:
    return min(max(seconds, _SHORTEST_SECONDS), _LONGEST_SECONDS) if math.isfinite(seconds) else otherwise


def remaining(quantiles: tuple[float, float, float], elapsed: float) -> tuple[float, float, float]:
    """Return the (q10, q50, q90) of what remains, given that it has run ``elapsed`` seconds and not ended."""
    if elapsed <= 0.0:
        return quantiles
    _, q50, q90 = quantiles
    tail = max((q90 - q50) / math.log(5.0), _TAIL_OF_ELAPSED * elapsed, 1.0)
    if elapsed >= q90:  # the tail has no memory
        rests = [-tail * math.log(1.0 - share) for share in _SHARES]
    else:
        gone = _share_ended(quantiles, elapsed)
        rests = [_quantile(quantiles, gone + share * (1.0 - gone), tail) - elapsed for share in _SHARES]
    return max(rests[0], _SHORTEST_SECONDS), max(rests[1], _SHORTEST_SECONDS), max(rests[2], _SHORTEST_SECONDS)


def _share_ended(quantiles: tuple[float, float, float], elapsed: float) -> float:
    q10, q50, q90 = quantiles
    if elapsed < q10:
        return 0.1 * elapsed / q10
    if elapsed < q50:
        return 0.1 + 0.4 * (elapsed - q10) / (q50 - q10)
    return 0.5 + 0.4 * (elapsed - q50) / (q90 - q50)


def _quantile(quantiles: tuple[float, float, float], share: float, tail: float) -> float:
    q10, q50, q90 = quantiles
    if share < 0.1:
        return q10 * share / 0.1
    if share < 0.5:
        return q10 + (q50 - q10) * (share - 0.1) / 0.4
    if share <= 0.9:
        return q50 + (q90 - q50) * (share - 0.5) / 0.4
    return q90 - tail * math.log((1.0 - share) / 0.1)


@lru_cache(maxsize=4096)
def normal_steps(count: int) -> tuple[float, float, float]:
    """Return the z-values of the 10th, 50th and 90th percentile of the largest of ``count`` independent draws."""
    n = max(1, min(count, 100_000))
    low, middle, high = (_NORMAL.inv_cdf(share ** (1.0 / n)) for share in _SHARES)
    return low, middle, high


def longest_of(quantiles: tuple[float, float, float], count: int) -> tuple[float, float, float]:
    """Return the quantiles of the longest of ``count`` tasks of the same kind: a fan-out ends with its slowest."""
    if count <= 1:
        return quantiles
    q10, q50, q90 = quantiles
    shifted = [q50 + z / Z90 * ((q90 - q50) if z > 0 else (q50 - q10)) for z in normal_steps(count)]
    return shifted[0], shifted[1], shifted[2]


def boot_quantile(estimate: DurationEstimate, ready_quantile: float) -> float:
    """Return the boot time that is not exceeded with probability 1 − ``ready_quantile`` (q90 for 0.1), in seconds."""
    _, q50, q90 = sane(estimate)
    return max(q50 + (q90 - q50) * early_factor(ready_quantile), _SHORTEST_SECONDS)


def early_factor(ready_quantile: float) -> float:
    """Return how many (q50 − q10) before the median a quantile lies: 1 for 0.1, 0 for the median, at most 2."""
    share = min(max(ready_quantile, 1e-6), 0.5)
    return min(-_NORMAL.inv_cdf(share) / Z90, 2.0)
