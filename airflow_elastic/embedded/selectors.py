"""Label and field selectors, as query parameters and as parts of objects (match expressions)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from airflow_elastic.embedded.types import Object

__all__ = ["Predicate", "Selection", "parse_field_selector", "parse_label_selector", "selector_matches"]

Predicate = Callable[[Mapping[str, str]], bool]

_SET_TERM = re.compile(r"^\s*(\S+)\s+(in|notin)\s*\(([^()]*)\)\s*$")
_KEY = re.compile(r"^([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")

_VALUE = re.compile(r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$")
_COMPARISON = re.compile(r"^\s*(\S+?)\s*([<>])\s*(-?\d+)\s*$")


class Selection:
    """What a list or watch asks for: a namespace, labels and fields."""

    __slots__ = ("_fields", "_labels", "everything", "name", "namespace")

    def __init__(
        self,
        namespace: str = "",
        labels: Sequence[Predicate] = (),
        fields: Sequence[tuple[str, str, bool]] = (),
    ) -> None:
        self.namespace = namespace
        self._labels = tuple(labels)
        self.name = next((value for path, value, equal in fields if path == "metadata.name" and equal), "")
        self._fields = tuple((path.split("."), value, equal) for path, value, equal in fields)
        self.everything = not self._labels and not self._fields
        """No selector beyond the namespace (which callers check by their own index)."""

    def matches(self, obj: Object) -> bool:
        """Tell whether an object is selected (the namespace is not looked at)."""
        if self._labels:
            labels = obj["metadata"].get("labels") or {}
            if not all(predicate(labels) for predicate in self._labels):
                return False
        return all((_field(obj, path) == value) is equal for path, value, equal in self._fields)


def _field(obj: Object, path: Sequence[str]) -> str:
    value: Any = obj
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
        if value is None:
            return "false" if path[-1] == "unschedulable" else ""
    if value is True or value is False:
        return "true" if value else "false"
    return str(value)


@lru_cache(maxsize=1024)
def parse_label_selector(text: str) -> tuple[Predicate, ...]:
    """Read ``a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1,m<2``.

    Raises:
        ValueError: not a label selector.
    """
    terms = [term.strip() for term in re.split(r",(?![^()]*\))", text) if term.strip()]
    return tuple(_label_term(term) for term in terms)


def _label_term(term: str) -> Predicate:
    match = _SET_TERM.match(term)
    if match:
        key, operator, listed = match.groups()
        values = frozenset(value.strip() for value in listed.split(","))
        return _expression(_checked_key(key), "In" if operator == "in" else "NotIn", values)
    compared = _COMPARISON.match(term)
    if compared:
        key, sign, number = compared.groups()
        return _comparison(_checked_key(key), int(number), larger=sign == ">")
    for sign, operator in (("!=", "NotIn"), ("==", "In"), ("=", "In")):
        if sign in term:
            key, _, value = term.partition(sign)
            return _expression(_checked_key(key.strip()), operator, frozenset((_checked_value(value.strip()),)))
    if term.startswith("!"):
        return _expression(_checked_key(term[1:].strip()), "DoesNotExist", frozenset())
    return _expression(_checked_key(term), "Exists", frozenset())


def _checked_key(key: str) -> str:
    if not _KEY.match(key):
        raise ValueError(f"unable to parse requirement: {key!r} is not a label key")
    return key


def _checked_value(value: str) -> str:
    if not _VALUE.match(value):
        raise ValueError(f"unable to parse requirement: {value!r} is not a label value")
    return value


def _comparison(key: str, limit: int, *, larger: bool) -> Predicate:
    def holds(labels: Mapping[str, str]) -> bool:
        try:
            number = int(labels.get(key, ""))
        except ValueError:
            return False
        return number > limit if larger else number < limit

    return holds


def _expression(key: str, operator: str, values: frozenset[str]) -> Predicate:
    if operator == "In":
        return lambda labels: labels.get(key) in values
    if operator == "NotIn":
        return lambda labels: labels.get(key) not in values
    if operator == "Exists":
        return lambda labels: key in labels
    if operator == "DoesNotExist":
        return lambda labels: key not in labels
    raise ValueError(f"{operator!r} is not a valid label selector operator")


def selector_matches(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Tell whether a LabelSelector object (matchLabels, matchExpressions) selects labels; None selects nothing."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(
        _expression(term["key"], term["operator"], frozenset(term.get("values") or ()))(labels)
        for term in selector.get("matchExpressions") or ()
    )


@lru_cache(maxsize=1024)
def parse_field_selector(text: str) -> tuple[tuple[str, str, bool], ...]:
    """Read ``a.b=c,d!=e`` into (path, value, equal) terms.

    Raises:
        ValueError: not a field selector.
    """
    terms = []
    for term in (part.strip() for part in text.split(",")):
        if not term:
            continue
        for sign in ("!=", "==", "="):
            if sign in term:
                path, _, value = term.partition(sign)
                terms.append((path.strip(), value.strip(), sign != "!="))
                break
        else:
            raise ValueError(f"invalid selector: '{term}'; can't understand '{term}'")
    return tuple(terms)
