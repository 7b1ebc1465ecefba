"""What a user who may not read every DAG sees: the capacity in full, the other DAGs without their names.

Machines and slots are shared, so who holds them must stay visible as a figure; which DAG it is need not.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Collection, Iterable, Mapping
from typing import Any

__all__ = ["HIDDEN_DAG", "HIDDEN_RUN", "HIDDEN_TASK", "Veil", "dag_ids_of"]

HIDDEN_DAG = "(hidden DAG)"
HIDDEN_RUN = "(hidden run)"
HIDDEN_TASK = "(hidden task)"

_PROCESS_SALT = secrets.token_bytes(16)
_RUN_LISTS = ("runs", "active_runs", "reservations", "tasks")
_TEXTS = frozenset({"about", "sentence", "why", "kept_because", "frozen", "failure"})
_WORD = re.compile(r"[\w.-]+")
"""What Airflow allows in a DAG id; in a sentence a word may also be ``DAG_ID.TASK_ID``, or end with a full stop."""


def dag_ids_of(document: Mapping[str, Any]) -> set[str]:
    """Return every DAG id that a status document names in its lists."""
    return {str(entry["dag_id"]) for name in _RUN_LISTS for entry in document.get(name, ())}


class Veil:
    """Replaces the names of hidden DAGs and of their runs in documents, records and sentences."""

    def __init__(
        self, hidden_dag_ids: Collection[str], hidden_run_ids: Collection[str] = (), readable: Collection[str] = ()
    ) -> None:
        self._hidden = frozenset(hidden_dag_ids)
        self._readable = frozenset(readable)
        odd = {dag_id for dag_id in self._hidden if not _WORD.fullmatch(dag_id)}
        self._odd = _any_of(odd)
        self._runs = _any_of(hidden_run_ids)

    @classmethod
    def over(cls, document: Mapping[str, Any], all_dag_ids: Iterable[str], readable: Collection[str]) -> Veil:
        """Return the veil for a user who may read ``readable``, and to whom every other DAG is hidden."""
        hidden = (set(all_dag_ids) | dag_ids_of(document)) - set(readable)
        entries = [entry for name in _RUN_LISTS for entry in document.get(name, ())]
        shown_runs = {str(entry["run_id"]) for entry in entries if entry["dag_id"] not in hidden}
        hidden_runs = {str(entry["run_id"]) for entry in entries if entry["dag_id"] in hidden}
        return cls(hidden, hidden_runs - shown_runs, readable)

    def __bool__(self) -> bool:
        return bool(self._hidden)

    def text(self, text: str) -> str:
        """Return a sentence without hidden names."""
        if not self._hidden:
            return text
        # Run ids first: they hold words that could be DAG ids.
        for pattern, instead in ((self._runs, HIDDEN_RUN), (self._odd, HIDDEN_DAG)):
            if pattern is not None:
                text = pattern.sub(instead, text)
        return _WORD.sub(self._word, text)

    def _word(self, match: re.Match[str]) -> str:
        """Replace the longest known DAG id at the start of a word, if it is hidden: ``etl`` and ``etl.load`` differ."""
        word = match.group()
        end = len(word)
        while end > 0:
            start = word[:end]
            if start in self._readable:
                return word
            if start in self._hidden:
                return HIDDEN_DAG + word[end:]
            end = word.rfind(".", 0, end)
        return word

    def over_value(self, value: Any) -> Any:
        """Return a JSON value with hidden names replaced, at any depth, in every field that may hold one.

        Names of node pools, classes and states stay as they are, even where a hidden DAG is called the same.
        """
        if not self._hidden:
            return value
        if isinstance(value, Mapping):
            is_hidden = value.get("dag_id") in self._hidden
            return {key: self._field(key, each, is_hidden) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.over_value(each) for each in value]
        return value

    def _field(self, key: str, value: Any, is_hidden: bool) -> Any:
        if not isinstance(value, str):
            return self.over_value(value)
        if key == "dag_id":
            return HIDDEN_DAG if is_hidden else value
        if key == "run_id":
            return HIDDEN_RUN if is_hidden else value
        if key == "task_id":
            return HIDDEN_TASK if is_hidden else value
        # A reservation's id is a digest of its DAG and run ids, which could be tried out.
        if key == "id" and is_hidden:
            return hashlib.sha256(_PROCESS_SALT + value.encode()).hexdigest()[:16]
        return self.text(value) if key in _TEXTS else value


def _any_of(names: Collection[str]) -> re.Pattern[str] | None:
    """Return a pattern for any of these texts, the longest first; None for none."""
    ordered = sorted((name for name in names if name), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, ordered))) if ordered else None
