"""Notices that this process stood still or that the clock was set: what was seen before may not hold any more."""

from __future__ import annotations

from airflow_elastic.model.snapshot import PlannerMemory

__all__ = ["PauseGuard", "no_later_than"]

_JUMP_SECONDS = 2.0
_PAUSE_SECONDS = 5.0


class PauseGuard:
    """Compares the wall clock and the monotonic clock from tick to tick."""

    def __init__(self) -> None:
        self._wall: float | None = None
        self._monotonic = 0.0

    def check(self, wall: float, monotonic: float, expected_seconds: float) -> str:
        """Return what happened since the last call as a sentence, or an empty string when nothing unusual did.

        ``expected_seconds`` is the longest that a tick and its wait should take.
        """
        before_wall, before = self._wall, self._monotonic
        self._wall, self._monotonic = wall, monotonic
        if before_wall is None:
            return ""
        passed = monotonic - before
        jumped = (wall - before_wall) - passed
        if abs(jumped) > _JUMP_SECONDS:
            return f"the clock jumped by {jumped:+.1f} s: everything is observed anew before anything is done"
        if passed > expected_seconds + _PAUSE_SECONDS:
            return f"this process stood still for {passed:.1f} s: everything is observed anew before anything is done"
        return ""


def no_later_than(memory: PlannerMemory, now: float) -> PlannerMemory:
    """Return the planner's memory without moments that lie in the future of a clock that was set back.

    A cool-down would otherwise last as long as the clock was set back.
    """

    def cut(moments: tuple[tuple[str, float], ...]) -> tuple[tuple[str, float], ...]:
        return tuple((name, min(at, now)) for name, at in moments)

    return PlannerMemory(cut(memory.last_scale_out_at), cut(memory.last_scale_in_at), cut(memory.idle_since))
