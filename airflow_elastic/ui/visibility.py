"""What a user who may not read every DAG sees: the capacity in full, the other DAGs without their names.

Machines and slots are shared, so who holds them must stay visible as a figure; which DAG it is need not.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

__all__ = ["HIDDEN_DAG", "HIDDEN_RUN", "Veil", "dag_ids_of"]

HIDDEN_DAG = "(a DAG that you may not read)"
HIDDEN_RUN = "(run)"

_RUN_LISTS = ("runs", "active_runs", "reservations")


def dag_ids_of(document: Mapping[str, Any]) -> set[str]:
    """Return every DAG id that a status document names in its lists."""
    return {str(entry["dag_id"]) for name in _RUN_LISTS for entry in document.get(name, ())}


class Veil:
    """Replaces the names of hidden DAGs and of their runs in documents, records and sentences."""

    def __init__(self, hidden_dag_ids: Collection[str], hidden_run_ids: Collection[str] = ()) -> None:
        self._hidden = frozenset(hidden_dag_ids)
        self._dags = _whole_words(self._hidden)
        self._runs = _whole_words(hidden_run_ids)

    @classmethod
    def over(cls, document: Mapping[str, Any], all_dag_ids: Iterable[str], readable: Collection[str]) -> Veil:
        """Return the veil for a user who may read ``readable``, and to whom everything else is hidden."""
        hidden = (set(all_dag_ids) | dag_ids_of(document)) - set(readable)
        entries = [entry for name in _RUN_LISTS for entry in document.get(name, ())]
        shown_runs = {str(entry["run_id"]) for entry in entries if entry["dag_id"] not in hidden}
        hidden_runs = {str(entry["run_id"]) for entry in entries if entry["dag_id"] in hidden}
        return cls(hidden, hidden_runs - shown_runs)

    def __bool__(self) -> bool:
        return bool(self._hidden)

    def text(self, text: str) -> str:
        """Return a sentence without hidden names."""
        if self._dags is not None:
            text = self._dags.sub(HIDDEN_DAG, text)
        if self._runs is not None:
            text = self._runs.sub(HIDDEN_RUN, text)
        return text

    def over_value(self, value: Any) -> Any:
        """Return any JSON value with hidden names replaced in every string and key, at any depth."""
        if not self._hidden:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            is_hidden = value.get("dag_id") in self._hidden
            return {
                self.text(str(key)): HIDDEN_RUN if is_hidden and key == "run_id" else self.over_value(each)
                for key, each in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.over_value(each) for each in value]
        return value


def _whole_words(names: Collection[str]) -> re.Pattern[str] | None:
    # Longest first, and no match inside a longer name: hiding "etl" must not mangle "etl_nightly".
    ordered = sorted((name for name in names if name), key=len, reverse=True)
    if not ordered:
        return None
    return re.compile(r"(?<![\w.-])(?:" + "|".join(map(re.escape, ordered)) + r")(?![\w-]|\.\w)")
