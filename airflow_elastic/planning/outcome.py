"""Trigger rules: does a task run, given what is known or expected of its upstream, and which of them does it wait for?

A task that has not ended is expected to succeed; so a rule that waits for a failure is not expected to run.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

__all__ = ["Outcome", "Wait", "judge"]


class Outcome(Enum):
    """How a task ended or is expected to end."""

    SUCCESS = "success"
    FAILED = "failed"
    SKIPPED = "skipped"


class Wait(Enum):
    """Which upstream tasks decide when it starts."""

    LAST = "last"
    FIRST_SUCCESS = "first success"
    FIRST_FAILURE = "first failure"
    FIRST = "first"
    NONE = "none"


def judge(rule: str, upstream: Sequence[Outcome]) -> tuple[Outcome | None, Wait]:
    """Return (None, what it waits for) for a task that will run, else (its outcome without running, LAST)."""
    if not upstream or rule in ("always", "dummy"):
        return None, Wait.NONE
    failed = upstream.count(Outcome.FAILED)
    skipped = upstream.count(Outcome.SKIPPED)
    succeeded = len(upstream) - failed - skipped
    if rule == "one_success":
        if succeeded:
            return None, Wait.FIRST_SUCCESS
        return (Outcome.FAILED if failed else Outcome.SKIPPED), Wait.LAST
    if rule == "one_done":
        return (None, Wait.FIRST) if succeeded or failed else (Outcome.SKIPPED, Wait.LAST)
    if rule == "one_failed":
        return (None, Wait.FIRST_FAILURE) if failed else (Outcome.SKIPPED, Wait.LAST)
    return _needs_all(rule, succeeded, failed, skipped), Wait.LAST


def _needs_all(rule: str, succeeded: int, failed: int, skipped: int) -> Outcome | None:
    """Judge the rules that wait for every upstream task."""
    if rule == "all_failed":
        return Outcome.SKIPPED if succeeded or skipped else None
    if rule == "all_skipped":
        return Outcome.SKIPPED if succeeded or failed else None
    if rule in ("none_failed", "none_failed_min_one_success", "none_failed_or_skipped"):
        if failed:
            return Outcome.FAILED
        return Outcome.SKIPPED if rule != "none_failed" and not succeeded else None
    if rule == "none_skipped":
        return Outcome.SKIPPED if skipped else None
    if rule == "all_done_min_one_success":
        if succeeded:
            return None
        return Outcome.FAILED if failed else Outcome.SKIPPED
    if rule.startswith("all_done"):
        return None
    # all_success, and whatever a later Airflow adds: the cautious reading.
    if failed:
        return Outcome.FAILED
    return Outcome.SKIPPED if skipped else None
