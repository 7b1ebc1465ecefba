"""``airflow elastic plan``: what the controller does now, what it will do, and what it refuses, with reasons.

It shows the leader's own last plan rather than making a second one from another moment. Exit codes as for ``status``.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from airflow_elastic.cli.commands.status import as_data, cell, exit_code, headline, notice, plain_table
from airflow_elastic.cli.output import emit
from airflow_elastic.ui.asks import ask_text, ask_time
from airflow_elastic.ui.published import Published, open_published
from airflow_elastic.ui.words import duration, moment

__all__ = ["plan_data", "run"]

_MAX_RUNS = 40


def run(args: argparse.Namespace) -> None:
    """Print the leader's last plan."""
    _, published = open_published(time.time())
    emit(args, plan_data(published), lambda: tables(published))
    sys.exit(exit_code(published))


def plan_data(published: Published) -> dict[str, Any]:
    """Return the plan's part of the document as plain data."""
    document = published.document
    data: dict[str, Any] = {key: value for key, value in as_data(published).items() if key != "document"}
    if document is not None:
        data |= {key: document[key] for key in ("now", "mode", "frozen", "actions", "refusals", "reservations")}
        runs = [{**run_, "asked_or_due_at": ask_time(document, run_)} for run_ in document["runs"]]
        data["coming"] = sorted(runs, key=lambda run: (run["ask_at"], run["starts_at"]))
        data["node_pools"] = [
            {key: pool[key] for key in ("name", "usable_nodes", "target_nodes", "max_nodes", "forecast")}
            for pool in document["node_pools"]
        ]
    return data


def tables(published: Published) -> RenderableType:
    """Return the plan as tables; only the notice where nothing is published."""
    document = published.document
    if document is None:
        return notice(published)
    parts: list[RenderableType] = [headline(published), _actions(document), _coming(document), _reservations(document)]
    if document["refusals"]:
        parts.append(_refusals(document))
    return Group(*parts)


def _actions(document: dict[str, Any]) -> RenderableType:
    if not document["actions"]:
        return Text("\nNothing to change now.", style="dim")
    title = {"manage": "Now", "sync": "Now (mode sync: slots only; nodes are recommended)"}.get(
        document["mode"], f"Recommended (mode {document['mode']}: nothing is done)"
    )
    table = plain_table(title, "what", "about", "from", "to", "why", numbers=("from", "to"))
    for action in document["actions"]:
        table.add_row(
            action["kind"], cell(action["about"]), _amount(action["was"]), _amount(action["to"]),
            cell(action["sentence"]),
        )  # fmt: skip
    return table


def _coming(document: dict[str, Any]) -> RenderableType:
    runs = sorted(document["runs"], key=lambda run: (run["ask_at"], run["starts_at"]))
    if not runs:
        return Text("\nNo coming or active run needs nodes within the horizon.", style="dim")
    now = document["now"]
    table = plain_table(
        "Runs and the nodes that they need", "due to be asked for", "run starts", "needed", "for", "nodes", "pool",
        "DAG", "run",
        numbers=("nodes",),
    )  # fmt: skip
    for run_ in runs[:_MAX_RUNS]:
        table.add_row(
            ask_text(document, run_), moment(run_["starts_at"], now), moment(run_["needed_at"], now),
            duration(run_["until_at"] - run_["needed_at"]), str(run_["nodes"]), cell(run_["node_pool"]),
            cell(run_["dag_id"]), cell(run_["run_id"]),
        )  # fmt: skip
    if len(runs) > _MAX_RUNS:
        table.caption = f"and {len(runs) - _MAX_RUNS} more; --output json has them all"
    return table


def _reservations(document: dict[str, Any]) -> RenderableType:
    if not document["reservations"]:
        return Text("")
    now = document["now"]
    table = plain_table(
        "Reservations", "state", "nodes", "warm", "pool", "DAG", "needed", "at the latest gone", "why",
        numbers=("nodes", "warm"),
    )  # fmt: skip
    for each in document["reservations"][:_MAX_RUNS]:
        table.add_row(
            each["state"].replace("_", " "), str(each["nodes"]), _warmth(each), cell(each["node_pool"]),
            cell(each["dag_id"]), moment(each["needed_at"], now), moment(each["expires_at"] or None, now),
            cell(each["why"]),
        )  # fmt: skip
    return table


def _refusals(document: dict[str, Any]) -> Table:
    table = plain_table("Not done", "about", "why")
    for refusal in document["refusals"]:
        table.add_row(cell(refusal["about"]), cell(refusal["sentence"], "yellow"))
    return table


def _warmth(reservation: dict[str, Any]) -> str:
    """Return the nodes kept warm; until all of them are usable they are coming."""
    nodes = reservation["warm_nodes"]
    return f"{nodes} coming" if nodes and reservation["state"] in ("requested", "warming") else str(nodes)


def _amount(number: int) -> str:
    return "unlimited" if number < 0 else str(number)
