"""The carrier: what a task says about its capacity, inside ``executor_config``.

Custom operator attributes are lost when a DAG is serialized; ``executor_config`` survives on plain and mapped tasks and
sits on the task instance's row. Executors ignore the unknown key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_elastic.model.resources import NO_RESOURCES, Resources, format_amount

__all__ = ["CARRIER_KEY", "TaskCapacity", "read_carrier", "write_carrier"]

CARRIER_KEY = "elastic"


@dataclass(frozen=True, slots=True)
class TaskCapacity:
    """A task's own word on capacity. An empty ``node_pools`` means those of its class."""

    capacity_class: str
    requests: Resources = NO_RESOURCES
    node_pools: tuple[str, ...] = ()
    impossible: str = ""
    """Why no node can ever hold it, as one sentence; empty: it fits."""


def write_carrier(capacity: TaskCapacity, executor_config: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return an ``executor_config`` that carries ``capacity`` beside what was there."""
    entry: dict[str, Any] = {
        "class": capacity.capacity_class,
        "requests": {name: format_amount(name, amount) for name, amount in capacity.requests.amounts},
    }
    if capacity.node_pools:
        entry["node_pools"] = list(capacity.node_pools)
    if capacity.impossible:
        entry["impossible"] = capacity.impossible
    return {**(executor_config or {}), CARRIER_KEY: entry}


def read_carrier(executor_config: object) -> TaskCapacity | None:
    """Return what an ``executor_config`` carries; None where it carries nothing of ours or nothing that can be read."""
    entry = executor_config.get(CARRIER_KEY) if isinstance(executor_config, Mapping) else None
    if not isinstance(entry, Mapping):
        return None
    try:
        requests = Resources.parse({str(name): text for name, text in dict(entry.get("requests") or {}).items()})
    except (ValueError, TypeError):
        requests = NO_RESOURCES
    pools = entry.get("node_pools")
    return TaskCapacity(
        capacity_class=str(entry.get("class") or ""),
        requests=requests,
        node_pools=tuple(str(pool) for pool in pools) if isinstance(pools, list | tuple) else (),
        impossible=str(entry.get("impossible") or ""),
    )
