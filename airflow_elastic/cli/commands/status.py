"""``airflow elastic status``: what the controller last published, as tables or JSON.

Exit codes: 0 a live controller; 1 nothing is published; 2 the database does not answer; 3 the controller is silent;
4 it is live but frozen (its view of cluster or database is too old to act on).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from airflow_elastic.cli.output import console, emit, to_json
from airflow_elastic.ui.published import Availability, Published, open_published, read_published
from airflow_elastic.ui.words import count, duration, moment, printable

__all__ = [
    "EXIT_FROZEN",
    "EXIT_NOTHING",
    "EXIT_SILENT",
    "as_data",
    "cell",
    "exit_code",
    "headline",
    "notice",
    "plain_table",
    "run",
]

EXIT_NOTHING = 1
EXIT_SILENT = 3
EXIT_FROZEN = 4

_MAX_ROWS = 20
_WATCH_SECONDS = 1.0


def run(args: argparse.Namespace) -> None:
    """Print the published status; with ``--watch`` again each second until Ctrl-C."""
    store, published = open_published(time.time())
    if getattr(args, "watch", False):
        _watch(args, store)
        return
    emit(args, as_data(published), lambda: tables(published))
    sys.exit(exit_code(published))


def as_data(published: Published) -> dict[str, Any]:
    """Return what was published as plain data, with its age and what is wrong with it."""
    return {
        "availability": published.availability.value,
        "age_seconds": None if published.age_seconds is None else round(published.age_seconds, 3),
        "sentence": published.sentence,
        "next_step": published.next_step,
        "document": published.document,
    }


def exit_code(published: Published) -> int:
    """Return the command's exit code (see the module's text)."""
    if published.document is None:
        return EXIT_NOTHING
    if published.availability is Availability.STALE:
        return EXIT_SILENT
    return EXIT_FROZEN if published.document.get("frozen") else 0


def tables(published: Published) -> RenderableType:
    """Return the whole status as tables; only the notice where nothing is published."""
    document = published.document
    if document is None:
        return notice(published)
    return Group(
        headline(published),
        _node_pools(document),
        *(cell(f"{pool['name']}: {pool['failure']}", "red") for pool in document["node_pools"] if pool["failure"]),
        _airflow_pools(document),
        _active_runs(document),
        Text(f"{len(document['reservations'])} reservations, {len(document['runs'])} needs of coming or active runs: "
             "see `airflow elastic plan`.", style="dim"),
    )  # fmt: skip


def headline(published: Published) -> RenderableType:
    """Return who leads, in which mode, how fresh it is, and every warning."""
    document = published.document or {}
    now, controller = document["now"], document["controller"]
    lines = [
        Text.assemble(
            ("Elastic capacity  ", "bold"), (f"mode {document['mode']}", "cyan"),
            f"  leader {controller['holder']}, up {duration(now - controller['started_at'])}, "
            f"published {duration(published.age_seconds or 0)} ago, from {document['source'] or 'discovery'}",
        )
    ]  # fmt: skip
    if published.availability is Availability.STALE:
        lines.append(notice(published))
    if document["frozen"]:
        lines.append(cell(f"Frozen: {document['frozen']}", "yellow"))
    if controller["configuration_error"]:
        lines.append(cell(f"Capacity file: {controller['configuration_error']}", "red"))
    return Group(*lines)


def notice(published: Published) -> Text:
    """Return what is wrong and what to do about it."""
    return Text.assemble((published.sentence, "bold red"), "\n", published.next_step)


def plain_table(title: str, *columns: str, numbers: tuple[str, ...] = ()) -> Table:
    """Return an empty table in the style of all our commands; ``numbers`` are aligned to the right."""
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    for column in columns:
        is_number = column in numbers
        table.add_column(column, justify="right" if is_number else "left", overflow="fold", no_wrap=is_number)
    return table


def cell(text: object, style: str = "") -> Text:
    """Return foreign text for a table: no markup, no control characters."""
    return Text(printable(str(text)), style=style)


def _node_pools(document: dict[str, Any]) -> Table:
    numbers = ("usable", "booting", "asked for", "unusable", "target", "limits", "pods")
    table = plain_table("Node pools", "pool", *numbers, numbers=numbers)
    for pool in document["node_pools"]:
        target = pool["target_nodes"]
        table.add_row(
            cell(pool["name"]), str(pool["usable_nodes"]), _unless_zero(pool["booting_nodes"]),
            _unless_zero(pool["coming_nodes"]), _unless_zero(pool["unusable_nodes"], "red"),
            "–" if target is None else str(target), f"{pool['min_nodes']}–{pool['max_nodes']}",
            str(sum(node["task_pods"] for node in pool["nodes"])),
        )  # fmt: skip
    if not document["node_pools"]:
        table.caption = "no node pool is declared: airflow elastic init writes a capacity file"
    return table


def _airflow_pools(document: dict[str, Any]) -> Table:
    numbers = ("slots", "fit", "phantom", "taken", "open", "held back")
    table = plain_table("Airflow pools of capacity classes", "pool", "class", *numbers, numbers=numbers)
    for pool in document["airflow_pools"]:
        if not pool["capacity_class"]:
            continue
        slots, fit, taken = pool["slots"], pool["usable_slots"], pool["occupied"]
        real = max(slots, 0) if fit is None else fit
        phantom = 0 if slots < 0 else max(0, slots - max(real, taken))
        offered = real if slots < 0 else min(slots, real)
        table.add_row(
            cell(pool["name"]), cell(pool["capacity_class"]), "unlimited" if slots < 0 else str(slots),
            "?" if fit is None else str(fit), _unless_zero(phantom, "red"), str(taken),
            str(max(0, offered - taken)), _unless_zero(pool["scheduled"], "yellow"),
        )  # fmt: skip
    return table


def _active_runs(document: dict[str, Any]) -> Table:
    table = plain_table("Active runs", "DAG", "run", "phase", "since", "tasks")
    runs, now = document["active_runs"], document["now"]
    for run_ in runs[:_MAX_ROWS]:
        states = ", ".join(f"{number} {state.replace('_', ' ')}" for state, number in run_["states"].items())
        table.add_row(
            cell(run_["dag_id"]), cell(run_["run_id"]), run_["phase"], moment(run_["starts_at"], now), states
        )  # fmt: skip
    if len(runs) > _MAX_ROWS:
        table.caption = f"and {count(len(runs) - _MAX_ROWS, 'more run')}"
    return table


def _unless_zero(number: int, style: str = "") -> Text:
    return Text(str(number), style=style) if number else Text("·", style="dim")


def _watch(args: argparse.Namespace, store: Any) -> None:
    """Show the status until Ctrl-C: tables in place, or one JSON line for each new document."""
    from rich.live import Live

    try:
        if args.output == "json":
            _watch_lines(store)
        with Live(console=console(), refresh_per_second=2, screen=sys.stdout.isatty()) as live:
            while True:
                live.update(tables(read_published(store, time.time())), refresh=True)
                time.sleep(_WATCH_SECONDS)
    except KeyboardInterrupt:
        return


def _watch_lines(store: Any) -> None:
    seen: object = ()
    while True:
        published = read_published(store, time.time())
        key = (published.availability, (published.document or {}).get("now"))
        if key != seen:
            sys.stdout.write(json.dumps(json.loads(to_json(as_data(published)))) + "\n")
            sys.stdout.flush()
            seen = key
        time.sleep(_WATCH_SECONDS)
