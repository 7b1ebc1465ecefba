"""Times and amounts as people read them in a terminal or a panel; times are Unix seconds."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

__all__ = ["clock", "count", "duration", "moment", "printable", "shape_text"]

_CONTROL = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0)), "�")


def duration(seconds: float) -> str:
    """Return a duration in two units at most: ``45 s``, ``4 min 10 s``, ``2 h 5 min``, ``3 days``."""
    total = max(0, round(seconds))
    if total < 60:
        return f"{total} s"
    if total < 600:
        return f"{total // 60} min {total % 60} s" if total % 60 else f"{total // 60} min"
    if total < 3600:
        return f"{round(total / 60)} min"
    if total < 48 * 3600:
        hours, minutes = divmod(round(total / 60), 60)
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{round(total / 86400)} days"


def clock(at: float) -> str:
    """Return a moment as UTC text, or a dash for one that no calendar holds."""
    try:
        return datetime.fromtimestamp(at, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "–"


def moment(at: float | None, now: float) -> str:
    """Return a moment as seen from ``now``: ``in 4 min``, ``12 s ago``, ``now``; a dash for None."""
    if at is None:
        return "–"
    ahead = at - now
    if abs(ahead) < 1.5:
        return "now"
    return f"in {duration(ahead)}" if ahead > 0 else f"{duration(-ahead)} ago"


def count(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def shape_text(shape: object) -> str:
    """Return resources of the document (a mapping or text) as one text."""
    if isinstance(shape, Mapping):
        return ", ".join(f"{name} {amount}" for name, amount in shape.items())
    return str(shape or "–")


def printable(text: str) -> str:
    """Return text that cannot steer a terminal: messages and ids come from elsewhere."""
    return text.translate(_CONTROL)
