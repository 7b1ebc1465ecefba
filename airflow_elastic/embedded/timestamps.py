"""Kubernetes' time notations: whole seconds, microseconds and nanoseconds, always UTC."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import lru_cache

__all__ = ["age", "now", "now_micro", "now_nano", "parse", "rfc3339"]


@lru_cache(maxsize=512)
def _of_second(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))


def rfc3339(seconds: float) -> str:
    """Return unix seconds in the notation of metav1.Time (whole seconds)."""
    return _of_second(int(seconds))


def now() -> str:
    """Return the present in the notation of metav1.Time."""
    return _of_second(int(time.time()))


def now_micro() -> str:
    """Return the present in the notation of metav1.MicroTime."""
    nanoseconds = time.time_ns()
    return f"{_of_second(nanoseconds // 1_000_000_000)[:-1]}.{nanoseconds % 1_000_000_000 // 1000:06d}Z"


def now_nano() -> str:
    """Return the present in the notation of container logs (RFC3339Nano)."""
    nanoseconds = time.time_ns()
    return f"{_of_second(nanoseconds // 1_000_000_000)[:-1]}.{nanoseconds % 1_000_000_000:09d}Z"


def parse(text: str) -> float:
    """Return unix seconds of an RFC 3339 time.

    Raises:
        ValueError: not such a time.
    """
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def age(text: str | None) -> str:
    """Return how long ago a time was, as kubectl shows it: 5s, 3m20s, 2h, 4d."""
    if not text:
        return "<unknown>"
    seconds = max(0, int(time.time() - parse(text)))
    if seconds < 120:
        return f"{seconds}s"
    minutes, rest = divmod(seconds, 60)
    if minutes < 10:
        return f"{minutes}m{rest}s" if rest else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    hours, minutes = divmod(minutes, 60)
    if hours < 8:
        return f"{hours}h{minutes}m" if minutes else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    days, hours = divmod(hours, 24)
    return f"{days}d{hours}h" if days < 8 and hours else f"{days}d"
