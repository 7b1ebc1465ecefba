"""The live view in the terminal."""

from __future__ import annotations

import time
from datetime import datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from airflow_elastic.demo.measurement import RunRow
from airflow_elastic.demo.observer import Observer

__all__ = ["live_view"]

_STATE_STYLES = {"success": "green", "failed": "red", "running": "cyan", "queued": "yellow"}
_ORDER = ("success", "running", "deferred", "queued", "scheduled", "none", "up_for_retry", "failed", "upstream_failed")


def live_view(observer: Observer, url: str, headline: str, *, runs: int = 10, decisions: int = 6) -> RenderableType:
    """Return the present picture: node pools, slots, the latest runs, the latest decisions."""
    parts: list[RenderableType] = [
        Text.assemble(("airflow-elastic demo  ", "bold"), (f"{url}/elastic/", "underline"), f"   {headline}"),
        _node_pools(observer),
        _slots(observer),
        _runs(observer, runs),
    ]
    if observer.decisions:
        parts.append(_decisions(observer, decisions))
    return Group(*parts)


def _node_pools(observer: Observer) -> Table:
    table = Table("node pool", "nodes", title="Nodes", title_justify="left", expand=False)
    for name in ("usable", "booting", "going", "reserved", "placeholders"):
        table.add_column(name, justify="right")
    for each in observer.node_counts():
        bar = Text("■" * each.usable, style="green")
        bar.append("▨" * each.booting, style="yellow")
        bar.append("□" * each.other, style="dim")
        numbers = (each.usable, each.booting, each.other, each.reserved, each.placeholders)
        table.add_row(each.pool, bar, *(str(number) if number else "–" for number in numbers))
    return table


def _slots(observer: Observer) -> Table:
    table = Table("Airflow pool", title="Slots", title_justify="left")
    table.add_column("slots", justify="right")
    table.add_column("usable", justify="right")
    table.add_column("")
    for each in observer.pool_slots():
        if each.slots is None:
            verdict = Text("no such pool yet", style="dim")
        elif each.slots > each.usable:
            verdict = Text(f"{each.slots - each.usable} phantom", style="red")
        else:
            verdict = Text(
                "true" if each.slots == each.usable else f"{each.usable - each.slots} to come", style="green"
            )
        table.add_row(each.pool, "–" if each.slots is None else str(each.slots), str(each.usable), verdict)
    return table


def _runs(observer: Observer, count: int) -> Table:
    table = Table("DAG", "run", "state", "tasks", title="Runs", title_justify="left")
    table.add_column("seconds", justify="right")
    for run in sorted(observer.runs, key=lambda each: each.run_after)[-count:]:
        states = observer.states.get((run.dag_id, run.run_id), {})
        shown = ", ".join(f"{states[state]} {state}" for state in _ORDER if states.get(state))
        table.add_row(
            run.dag_id,
            _clock(run.run_after),
            Text(run.state, style=_STATE_STYLES.get(run.state, "")),
            shown,
            _seconds(run),
        )
    return table


def _decisions(observer: Observer, count: int) -> Table:
    table = Table("at", "about", "decision", title="Latest decisions", title_justify="left")
    for at, _, about, sentence in reversed(observer.decisions[:count]):
        table.add_row(_clock(at), about, sentence)
    return table


def _seconds(run: RunRow) -> str:
    if run.started_at is None:
        return ""
    return f"{(run.ended_at or time.time()) - run.started_at:.0f}"


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at).strftime("%H:%M:%S")
