"""Errors are logged once per kind, then more and more rarely while they last, and once more when they are over."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Complaints", "sentence_of"]

logger = logging.getLogger(__name__)

_FIRST_REPEAT_SECONDS = 60.0
_LONGEST_REPEAT_SECONDS = 3600.0
_FIGURES = re.compile(r"\d+(\.\d+)?")


def sentence_of(error: BaseException) -> str:
    """Return what is shown of an error: ours say all themselves, of any other the kind is needed to make sense."""
    text = str(error)
    if type(error).__module__.startswith("airflow_elastic"):
        return text or type(error).__name__
    return f"unexpected {type(error).__name__}: {text}" if text else f"unexpected {type(error).__name__}"


@dataclass(slots=True)
class _Lasting:
    kind: str
    since: float
    next_at: float
    pause: float
    times: int = 1


class Complaints:
    """One lasting trouble for each place that can fail."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._lasting: dict[str, _Lasting] = {}

    def failed(self, place: str, error: BaseException | str) -> bool:
        """Note a failure at a place; return whether it was logged."""
        sentence = str(error) or type(error).__name__
        kind = f"{type(error).__name__}:{_FIGURES.sub('#', sentence)}"
        now = self._monotonic()
        lasting = self._lasting.get(place)
        if lasting is not None and lasting.kind == kind:
            lasting.times += 1
            if now < lasting.next_at:
                return False
            lasting.pause = min(_LONGEST_REPEAT_SECONDS, lasting.pause * 2)
            lasting.next_at = now + lasting.pause
            logger.warning("%s still fails after %d times: %s", place, lasting.times, sentence)
            return True
        pause = _FIRST_REPEAT_SECONDS
        self._lasting[place] = _Lasting(kind, now, now + pause, pause)
        expected = isinstance(error, str) or type(error).__module__.startswith("airflow_elastic")
        # An error of ours says all that there is to say; of any other the place in the code is needed.
        logger.warning("%s failed: %s", place, sentence, exc_info=None if expected else error)  # type: ignore[arg-type]
        return True

    def went_well(self, place: str) -> None:
        """Note that a place works (again)."""
        lasting = self._lasting.pop(place, None)
        if lasting is not None:
            seconds = self._monotonic() - lasting.since
            logger.info("%s works again after %d failure(s) in %.0f s", place, lasting.times, seconds)

    def lasts(self, place: str) -> bool:
        """Tell whether the place failed last time."""
        return place in self._lasting
