"""What a run asks for itself: ``conf["elastic"]`` or the DAG's param ``elastic``.

Anybody who may trigger a run writes it, so nothing in it is trusted: it is honoured as a whole or refused as a whole,
with one sentence that names the cause and the next step, and what is echoed of it is short.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, TypeVar

from airflow_elastic.config.values import Wrong, format_duration, listed, parse_duration, shown, suggestion
from airflow_elastic.model.capacity_class import CapacityClass
from airflow_elastic.model.demand import RunAnnotation
from airflow_elastic.model.settings import Settings

__all__ = ["ANNOTATION_KEYS", "parse_run_annotation"]

ANNOTATION_KEYS = ("nodes", "class", "hold")
_EXAMPLE = '{"elastic": {"nodes": 4, "class": "burst", "hold": "30m"}}'
_MOST_SENTENCES = 5

T = TypeVar("T")


def parse_run_annotation(raw: object, settings: Settings) -> RunAnnotation:
    """Return what a run asks for, within the admin's limits; ``refused`` says why it is not honoured.

    Never raises. None and an empty mapping ask for nothing.
    """
    if raw is None or (isinstance(raw, Mapping) and not raw):
        return RunAnnotation()
    if not isinstance(raw, Mapping):
        return RunAnnotation(refused=f"The run's annotation is {shown(raw)}, not a mapping: write {_EXAMPLE}.")
    problems = [
        f"unknown key {shown(key)}: {suggestion(key, ANNOTATION_KEYS)}"
        for key in islice((key for key in raw if key not in ANNOTATION_KEYS), _MOST_SENTENCES)
    ]
    default_class = None if "class" in raw else settings.capacity_class("")
    capacity_class = _read(raw, "class", lambda value: _class(value, settings), default_class, problems)
    hold = _read(raw, "hold", lambda value: _hold(value, settings), 0.0, problems)
    nodes = _read(raw, "nodes", lambda value: _nodes(value, settings, capacity_class), 0, problems)
    if problems:
        return RunAnnotation(refused=f"The run's annotation is refused: {'; '.join(problems[:_MOST_SENTENCES])}.")
    return RunAnnotation(nodes, capacity_class.name if capacity_class and "class" in raw else "", hold)


def _read(raw: Mapping[Any, Any], key: str, check: Callable[[object], T], default: T, problems: list[str]) -> T:
    if key not in raw:
        return default
    try:
        return check(raw[key])
    except Wrong as problem:
        problems.append(f"{key} {problem.wrong}: {problem.right}")
        return default


def _class(value: object, settings: Settings) -> CapacityClass:
    names = [each.name for each in settings.classes]
    allowed = [name for name in names if not settings.limits.allowed_classes or name in settings.limits.allowed_classes]
    if not isinstance(value, str) or not value:
        raise Wrong(f"{shown(value)} is not a class's name", f"use {listed(allowed)}" if allowed else "leave it out")
    found = settings.capacity_class(value)
    if found is None:
        raise Wrong(f"{shown(value)} is not known", suggestion(value, allowed, none="no class is declared"))
    if value not in allowed:
        raise Wrong(f"{shown(value)} is not allowed for runs", f"use {listed(allowed)}, or let an admin add it to "
                    "limits.allowed_classes in the capacity file")  # fmt: skip
    return found


def _hold(value: object, settings: Settings) -> float:
    seconds = parse_duration(value)
    most = settings.limits.max_hold_seconds
    if seconds > most:
        raise Wrong(f"{shown(value)} is over the limit of {format_duration(most)}",
                    "ask for less, or let an admin raise limits.max_hold in the capacity file")  # fmt: skip
    return seconds


def _nodes(value: object, settings: Settings, capacity_class: CapacityClass | None) -> int:
    most = settings.limits.max_nodes
    right = f"write a whole number from 0 to {most:,}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Wrong(f"{shown(value)} is not a number", right)
    if value != value or value in (float("inf"), float("-inf")):
        raise Wrong(f"{shown(value)} is not a finite number", right)
    if value != int(value):
        raise Wrong(f"{shown(value)} is not a whole number", right)
    if value < 0:
        raise Wrong(f"{shown(value)} is negative", right)
    if value > most:
        raise Wrong(f"{shown(value)} is over the limit of {most:,} nodes a run",
                    "ask for fewer, or let an admin raise limits.max_nodes in the capacity file")  # fmt: skip
    used = capacity_class
    if used is not None:
        room = sum(pool.max_nodes for pool in settings.node_pools if pool.name in used.node_pools)
        if value > room:
            raise Wrong(f"{shown(value)} is more than class {used.name} can ever have ({room:,} nodes)",
                        f"ask for fewer, or let an admin raise max_nodes of node pool {listed(used.node_pools)}"
                        " in the capacity file")  # fmt: skip
    return int(value)
