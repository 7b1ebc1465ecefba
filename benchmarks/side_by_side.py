"""The example DAGs with ElasticKubernetesPodOperator and with plain KubernetesPodOperator, side by side.

Both run on a live Airflow and the embedded cluster with the same machines and boot times, two scheduled runs of each
DAG, one stack after the other. Plain: static pool slots and a reactive autoscaler on every node pool,
with the same settings that it has on the one pool where we use it too. The figures are
those of the demo's reporter. Takes about 15 minutes: ``python benchmarks/side_by_side.py [--output json]``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from rich.console import Console
from rich.table import Table

from airflow_elastic.demo.baseline import baseline_variant
from airflow_elastic.demo.progress import Progress
from airflow_elastic.demo.report import percentile
from airflow_elastic.demo.run import ONCE_SECONDS, observed
from airflow_elastic.demo.stack import Stack
from airflow_elastic.demo.variant import Variant, demo_variant

RUNS_OF_EACH = 2
FIGURES = (
    ("first_task_wait_seconds_p95", "first-task wait, p95, s"),
    ("first_task_wait_seconds_p50", "first-task wait, median, s"),
    ("second_runs_first_task_wait_seconds_p95", "first-task wait of second runs, p95, s"),
    ("cold_tasks", "cold tasks (> 5 s unschedulable)"),
    ("prewarmed_runs", "runs with nodes ready before them"),
    ("node_seconds", "node-seconds billed"),
    ("busy_node_seconds", "… of these with a task's pod"),
    ("phantom_slot_seconds", "phantom slot-seconds"),
    ("failed_tasks", "failed tasks"),
    ("runs", "runs"),
)


def measure(variant: Variant) -> dict[str, Any]:
    progress = Progress()
    progress.say(f"== {variant.name}")
    began_at = time.monotonic()
    with Stack(variant, progress) as stack:
        stack.start()
        report = observed(stack, progress, once=True, deadline=began_at + ONCE_SECONDS + 120)
    runs = report["detail"]["runs"]
    seen: dict[str, int] = {}
    second_waits: list[float] = []
    for run in runs:
        seen[run["dag_id"]] = seen.get(run["dag_id"], 0) + 1
        if seen[run["dag_id"]] == RUNS_OF_EACH:
            second_waits.extend(run["first_task_wait_seconds"])
    waits = [wait for run in runs for wait in run["first_task_wait_seconds"]]
    report["first_task_wait_seconds_p50"] = percentile(waits, 0.5)
    report["second_runs_first_task_wait_seconds_p95"] = percentile(second_waits, 0.95)
    report["busy_node_seconds"] = round(
        sum(pool["busy_node_seconds"] for pool in report["detail"]["node_pools"].values()), 1
    )
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", choices=("table", "json"), default="table")
    args = parser.parse_args()
    ours = demo_variant()
    reports = {"plain": measure(baseline_variant(ours)), "elastic": measure(ours)}
    shown = {name: {key: report[key] for key, _ in FIGURES} for name, report in reports.items()}
    document = {**shown, "detail": {k: v["detail"] for k, v in reports.items()}}
    if args.output == "json":
        print(json.dumps(document))
    else:
        table = Table("", title="Same DAGs, same machines, two runs of each", title_justify="left")
        table.add_column("KubernetesPodOperator,\nreactive autoscaler", justify="right")
        table.add_column("ElasticKubernetesPodOperator,\nairflow-elastic", justify="right")
        for key, label in FIGURES:
            table.add_row(label, str(shown["plain"][key]), str(shown["elastic"][key]))
        Console(width=110).print(table)
    failed = [name for name, report in reports.items() if report["failed_tasks"] or report["runs"] < 2]
    for name in failed:
        print(f"{name}: {reports[name]['detail']['problems']}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
