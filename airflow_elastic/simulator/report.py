"""Rows as a table for people, and the plot of what stood against what was needed."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from airflow_elastic.simulator.compare import Simulated
from airflow_elastic.simulator.measures import Row
from airflow_elastic.simulator.svg import Curve, step_chart

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["medians", "plot", "rows_table"]

_COLUMNS = (
    ("node-hours", "node_hours", "{:.1f}"),
    ("× OPT₀", "x_opt0", "{:.3f}"),
    ("cost", "cost", "{:.1f}"),
    ("cold", "cold_share", "{:.2%}"),
    ("wait mean s", "wait_mean_seconds", "{:.1f}"),
    ("wait p95 s", "wait_p95_seconds", "{:.0f}"),
    ("first p95 s", "first_task_wait_p95_seconds", "{:.0f}"),
    ("makespan ×", "makespan_ratio", "{:.3f}"),
    ("used", "utilisation", "{:.0%}"),
    ("starts", "node_starts", "{:.0f}"),
    ("flips", "flips", "{:.0f}"),
    ("peak", "peak_nodes", "{:.0f}"),
)


def rows_table(rows: Sequence[Row], title: str = "") -> Table:
    """Return a table: a line for each policy, scenario and boot time, the median over seeds where there are several."""
    from rich.table import Table

    table = Table(title=title or None, title_justify="left")
    table.add_column("policy")
    table.add_column("boot s", justify="right")
    for head, _, _ in _COLUMNS:
        table.add_column(head, justify="right")
    last = None
    for each in medians(rows):
        if last is not None and each["boot_seconds"] != last:
            table.add_section()
        last = each["boot_seconds"]
        name = f"{each['policy']} ({each['scenario']})" if each["scenario"] else str(each["policy"])
        cells = [form.format(each[key]) for _, key, form in _COLUMNS]
        style = "bold" if each["policy"] == "elastic" and not each["scenario"] else None
        table.add_row(name, f"{each['boot_seconds']:g}", *cells, style=style)
    return table


def medians(rows: Sequence[Row]) -> list[dict[str, object]]:
    """Return one row for each (boot time, policy, scenario): the median of every figure over seeds and mixes."""
    groups: dict[tuple[float, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.boot_seconds, row.policy, row.scenario), []).append(row)
    found = []
    for (boot, policy, scenario), some in sorted(groups.items(), key=lambda item: item[0][0]):
        figures: dict[str, object] = {
            "policy": policy,
            "scenario": scenario,
            "boot_seconds": boot,
            "samples": len(some),
        }
        for _, key, _ in _COLUMNS:
            figures[key] = median(getattr(row, key) for row in some)
        found.append(figures)
    return found


def plot(results: Sequence[Simulated], need: Sequence[tuple[float, int]], title: str) -> str:
    """Return an SVG: the ideal need as an area, the machines of each policy as lines."""
    world = results[0].world
    begin = world.workload.starts_at - world.conditions.lead_in_seconds
    curves = [Curve("needed without any wait", need, is_area=True)]
    for each in results:
        changes: dict[float, int] = {}
        for pool in each.world.cluster.pools.values():
            before = 0
            for at, count in pool.counts:
                changes[at] = changes.get(at, 0) + count - before
                before = count
        total, steps = 0, []
        for at in sorted(changes):
            total += changes[at]
            steps.append((at, total))
        curves.append(Curve(each.row.policy, steps))
    return step_chart(title, curves, begin, world.workload.ends_at)
