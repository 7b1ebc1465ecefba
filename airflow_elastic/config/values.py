"""Checks of single values, free of YAML, pydantic and Airflow: each returns the value or raises :class:`Wrong`."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable

__all__ = [
    "SeveralWrong",
    "Wrong",
    "choice",
    "duration",
    "flag",
    "format_duration",
    "listed",
    "nearest",
    "number",
    "parse_duration",
    "printable",
    "shown",
    "suggestion",
    "text",
    "whole_number",
]

_DURATION_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(ms|s|m|h|d)")
_DURATION = re.compile(rf"^(?:{_DURATION_PART.pattern}\s*)+$")
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION_HINT = 'write seconds as a number, or a duration such as "90s", "5m", "4h" or "1h30m"'


class Wrong(ValueError):
    """A value (or the key it stands under) that cannot be used: what is wrong with it and what would be right."""

    def __init__(self, wrong: str, right: str, *, is_key: bool = False) -> None:
        super().__init__(f"{wrong}; {right}")
        self.is_key = is_key
        self.wrong = wrong
        self.right = right


class SeveralWrong(ValueError):
    """A mapping with several mistakes, each with the key below it ("" for the mapping itself)."""

    def __init__(self, problems: list[tuple[str, Wrong]]) -> None:
        super().__init__("; ".join(str(problem) for _, problem in problems))
        self.problems = problems


def shown(value: object) -> str:
    """Return a value as an error message may echo it: one line, printable, at most some 60 characters."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return f"a mapping of {len(value)} keys" if len(value) != 1 else "a mapping of one key"
    if isinstance(value, list | tuple | set):
        return f"a list of {len(value)} items" if len(value) != 1 else "a list of one item"
    if isinstance(value, str):
        return repr(value) if len(value) <= 60 else f"{value[:40]!r}… ({len(value):,} characters)"
    if isinstance(value, int):
        return str(value) if abs(value) < 10**30 else "a number of more than 30 digits"
    if isinstance(value, float):
        return repr(value)
    return f"a {type(value).__name__}"


def printable(word: str, *, longest: int = 60) -> str:
    """Return a word that others wrote so that it can stand in a message: one line, no control characters, not long."""
    cut = word if len(word) <= longest else word[: longest - 3] + "…"
    return cut if cut.isprintable() else cut.encode("unicode_escape").decode("ascii")


def nearest(word: object, known: Iterable[str]) -> str:
    """Return the known word most like ``word``, or an empty string when none is near.

    One that has it as a whole part between underscores comes before one that only looks like it.
    """
    if not isinstance(word, str) or len(word) > 100:
        return ""
    words = list(known)
    folded = {each.lower(): each for each in reversed(words)}
    typed = word.lower()
    if len(typed) > 1:
        whole = [each for each in words if typed in each.lower().replace("-", "_").split("_")]
        # In "tick_seconds" the word leads; in "airflow_pool" it is the last part.
        if holding := sorted(whole, key=lambda each: (not each.lower().startswith(typed), len(each))):
            exact = folded.get(typed)
            return exact or holding[0]
    found = difflib.get_close_matches(word.lower(), list(folded), n=1, cutoff=0.6)
    return folded[found[0]] if found else ""


def listed(words: Iterable[str], *, most: int = 12) -> str:
    """Return words as ``a, b or c``; a long list is cut."""
    names = [printable(each) for each in words]
    if len(names) > most:
        return ", ".join(names[:most]) + f" or one of {len(names) - most} more"
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def suggestion(word: object, known: Iterable[str], *, none: str = "") -> str:
    """Return advice for an unknown word: the nearest known one, and what is known."""
    names = list(known)
    near = nearest(word, names)
    if near:
        return f"did you mean {printable(near)}? Known: {listed(names)}"
    return f"use {listed(names)}" if names else none


def parse_duration(value: object) -> float:
    """Return a duration in seconds from a number of seconds or a text such as ``90s``, ``5m``, ``1h30m``.

    Raises:
        Wrong: not a duration, negative or not finite.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise Wrong(f"{shown(value)} is not a duration", _DURATION_HINT)
    if isinstance(value, str):
        stripped = value.strip()
        if len(stripped) > 40 or not _DURATION.match(stripped):
            raise Wrong(f"{shown(value)} is not a duration", _DURATION_HINT)
        return sum(float(amount) * _UNIT_SECONDS[unit] for amount, unit in _DURATION_PART.findall(stripped))
    seconds = _as_float(value)
    if not math.isfinite(seconds):
        raise Wrong(f"{shown(value)} is not a finite duration", _DURATION_HINT)
    if seconds < 0:
        raise Wrong(f"{shown(value)} is negative", _DURATION_HINT)
    return seconds


def format_duration(seconds: float) -> str:
    """Return seconds as people write a duration: ``4h``, ``1h30m``, ``90s`` → ``1m30s``, ``0.5s``."""
    if seconds != int(seconds) or seconds < 1:
        return f"{seconds!r}s" if seconds else "0s"
    rest, pieces = int(seconds), []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        if rest >= size:
            pieces.append(f"{rest // size}{unit}")
            rest %= size
    return "".join(pieces)


def duration(at_least: float, at_most: float) -> Callable[[object], float]:
    """Return a check for a duration within bounds (seconds)."""

    def check(value: object) -> float:
        seconds = parse_duration(value)
        if not at_least <= seconds <= at_most:
            bounds = f"write {format_duration(at_least)} to {format_duration(at_most)}"
            raise Wrong(f"{shown(value)} is out of bounds", bounds)
        return seconds

    return check


def whole_number(at_least: int, at_most: int) -> Callable[[object], int]:
    """Return a check for a whole number within bounds; a float without a fraction counts as whole."""

    def check(value: object) -> int:
        right = f"write a whole number from {at_least:,} to {at_most:,}" if at_least < at_most else f"write {at_most}"
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Wrong(f"{shown(value)} is not a number", right)
        if isinstance(value, float) and not value.is_integer():
            raise Wrong(f"{shown(value)} is not a whole number", right)
        if not at_least <= value <= at_most:
            raise Wrong(f"{shown(value)} is {'negative' if value < 0 else 'out of bounds'}", right)
        return int(value)

    return check


def number(at_least: float, at_most: float) -> Callable[[object], float]:
    """Return a check for a finite number within bounds."""

    def check(value: object) -> float:
        right = f"write a number from {at_least:g} to {at_most:,.12g}"
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Wrong(f"{shown(value)} is not a number", right)
        if not math.isfinite(_as_float(value)):
            raise Wrong(f"{shown(value)} is not a finite number", right)
        if not at_least <= value <= at_most:
            raise Wrong(f"{shown(value)} is {'negative' if value < 0 else 'out of bounds'}", right)
        return float(value)

    return check


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def flag(value: object) -> bool:
    """Return a truth value; only true and false are taken (YAML 1.2)."""
    if not isinstance(value, bool):
        raise Wrong(f"{shown(value)} is neither true nor false", "write true or false, without quotes")
    return value


def choice(*words: str) -> Callable[[object], str]:
    """Return a check for one of some words."""

    def check(value: object) -> str:
        if not isinstance(value, str) or value not in words:
            raise Wrong(f"{shown(value)} is not known here", suggestion(value, words))
        return value

    return check


def text(what: str, *, longest: int, pattern: str = "", right: str, empty: bool = False) -> Callable[[object], str]:
    """Return a check for one printable line of text that matches a pattern; ``what`` names it in messages."""
    compiled = re.compile(pattern) if pattern else None

    def check(value: object) -> str:
        if not isinstance(value, str):
            kind = "is a truth value" if isinstance(value, bool) else "is a number"
            if isinstance(value, int | float):
                raise Wrong(f"{shown(value)} {kind}, not text", f'put {what} in quotes: "{shown(value)}"')
            raise Wrong(f"{shown(value)} is not {what}", right)
        if not value:
            if empty:
                return value
            raise Wrong(f"{what} is empty", right)
        if len(value) > longest:
            raise Wrong(f"{shown(value)} is too long for {what} (at most {longest} characters)", right)
        if not value.isprintable() or (compiled and not compiled.fullmatch(value)):
            raise Wrong(f"{shown(value)} is not {what}", right)
        return value

    return check
