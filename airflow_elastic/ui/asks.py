"""When nodes are, or were, asked for on behalf of a run: only what will happen or has happened is told."""

from __future__ import annotations

from typing import Any

from airflow_elastic.ui.words import moment

__all__ = ["ask_text", "ask_time"]


def ask_time(document: dict[str, Any], run: dict[str, Any]) -> float | None:
    """Return when the run's nodes were asked for, else when they are due to be; None where neither is so.

    A past time comes from the reservation alone: the plan's own may lie before the run was known. Nobody asks for
    nodes of a pool without a provider.
    """
    if any(pool["name"] == run["node_pool"] and pool["provider"] == "none" for pool in document["node_pools"]):
        return None
    owner = (run["dag_id"], run["run_id"], run["node_pool"])
    for each in document["reservations"]:
        if (each["dag_id"], each["run_id"], each["node_pool"]) == owner and each["asked_at"] is not None:
            return float(each["asked_at"])
    return float(run["ask_at"]) if run["ask_at"] > document["now"] else None


def ask_text(document: dict[str, Any], run: dict[str, Any]) -> str:
    """Return the time of asking as seen from the document's moment, or a dash."""
    return moment(ask_time(document, run), document["now"])
