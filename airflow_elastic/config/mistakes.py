"""What can be wrong with a capacity file, and the error that carries all of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from airflow_elastic.config.values import printable
from airflow_elastic.errors import ConfigurationError

__all__ = ["CapacityFileError", "Mistake", "dotted"]

_MOST_SHOWN = 50
# Beyond this a list of mistakes helps nobody, and a hostile file could make one of any length.
MOST_KEPT = 1000

Path = tuple[str | int, ...]


def dotted(path: Path) -> str:
    """Return a key's path as people write it: ``rules[0].class``."""
    text = ""
    for part in path:
        piece = printable(part) if isinstance(part, str) else f"[{part}]"
        text += piece if isinstance(part, int) or not text else f".{piece}"
    return text


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake of a capacity file. Line and column count from 1; 0 where the mistake has no place in the text."""

    source: str
    line: int
    column: int
    key: str
    wrong: str
    """What is wrong, without a full stop."""
    right: str
    """What would be right, without a full stop."""

    def __str__(self) -> str:
        place = f"{self.source}:{self.line}:{self.column}" if self.line else self.source
        return ": ".join(part for part in (place, self.key, f"{self.wrong}; {self.right}") if part)

    def as_dict(self) -> dict[str, str | int]:
        """Return the fields as a dict for JSON."""
        return asdict(self)


class CapacityFileError(ConfigurationError):
    """A capacity file cannot be used; ``mistakes`` holds everything that is wrong with it, in the file's order."""

    def __init__(self, source: str, mistakes: tuple[Mistake, ...]) -> None:
        self.source = source
        self.mistakes = mistakes
        lines = [f"{source} cannot be used: {len(mistakes)} mistake{'s' if len(mistakes) != 1 else ''}"]
        lines += [f"  {mistake}" for mistake in mistakes[:_MOST_SHOWN]]
        if len(mistakes) > _MOST_SHOWN:
            lines.append(f"  … and {len(mistakes) - _MOST_SHOWN} more")
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[type[CapacityFileError], tuple[str, tuple[Mistake, ...]]]:
        return type(self), (self.source, self.mistakes)
