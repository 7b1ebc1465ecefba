"""Capacity benchmark: every policy over recurring workflows in simulated time, the production planner among them.

    python benchmarks/capacity.py --traces DIR --boot 45,90,180 --seeds 3 --output json

``--traces`` takes any folder with files in the format of the recorded workloads (workflow_<family>.csv[.gz] and
vm_runtime_noise.csv[.gz]); without it the folder that AIRFLOW_ELASTIC_TRACES names, or ../shared/data/traces beside the
repository, and without any of them made-up workflows. What each policy does and how the figures are counted is written
in airflow_elastic/simulator. Progress goes to stderr, the table or JSON to stdout.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from airflow_elastic.errors import ElasticError
from airflow_elastic.simulator.compare import ELASTIC, FIXED, POLICIES, needed
from airflow_elastic.simulator.measures import Row
from airflow_elastic.simulator.mixes import MIXES
from airflow_elastic.simulator.report import medians, plot, rows_table
from airflow_elastic.simulator.study import StudyPlan, run_study
from airflow_elastic.simulator.traces import traces_folder


def main() -> int:
    args = parser().parse_args()
    try:
        folder = None if args.generated else traces_folder(args.traces)
    except ElasticError as error:
        print(error, file=sys.stderr)
        return 1
    study = StudyPlan(
        traces=folder,
        families=tuple(args.families),
        boots=tuple(args.boot),
        seeds=tuple(range(args.first_seed, args.first_seed + args.seeds)),
        mixes=tuple(args.mixes),
        days_train=args.days_train,
        days_test=args.days_test,
        concurrency=args.concurrency,
        most_tasks=args.most_tasks,
        without_heaviest=args.without_heaviest,
        policies=tuple(args.policies),
        scenarios=args.scenarios,
        tick_seconds=args.tick_seconds,
    )
    begun = time.perf_counter()
    try:
        rows = run(study, args.plot)
    except (ElasticError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    source = str(folder.name) if folder else "made-up workflows"
    if args.output == "json":
        document = {
            "source": source,
            "seconds": round(time.perf_counter() - begun, 1),
            "rows": [row.as_dict() for row in rows],
            "medians": medians(rows),
        }
        print(json.dumps(document, indent=2))
    else:
        console = Console(width=None if sys.stdout.isatty() else 190)
        tasks = sorted({(row.workload, row.runs, row.tasks) for row in rows})
        console.print(f"{source}: " + "; ".join(f"{name}: {runs} runs, {count} tasks" for name, runs, count in tasks))
        console.print(rows_table(rows, "medians over seeds and mixes; node-hours as billed; cold: waited > 10 s"))
    return 0


def run(study: StudyPlan, plot_file: Path | None) -> list[Row]:
    rows: list[Row] = []
    shown = []
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        job = bar.add_task("reading", total=1.0)
        for each in run_study(study, lambda label, share: bar.update(job, description=label, completed=share)):
            rows.append(each.row)
            if not sys.stderr.isatty():
                row = each.row
                name = f"{row.policy} ({row.scenario})" if row.scenario else row.policy
                print(f"boot {row.boot_seconds:g} s, {row.workload}: {name}: {row.x_opt0:.3f} × OPT₀, "
                      f"{row.cold_share:.2%} cold", file=sys.stderr)  # fmt: skip
            if plot_file is not None and row_is_plotted(each.row, study):
                shown.append(each)
        if plot_file is not None and shown:
            world = shown[0].world
            steps = [
                step for some in needed(world.workload, world.settings, world.conditions).values() for step in some
            ]
            plot_file.write_text(plot(shown, steps, f"{shown[0].row.workload}, boot {study.boots[0]:g} s"))
    return rows


def row_is_plotted(row: Row, study: StudyPlan) -> bool:
    """Tell whether a row belongs to the plot: the first world of the study, ours and the two usual autoscalers."""
    is_first = row.seed == study.seeds[0] and row.boot_seconds == study.boots[0] and not row.scenario
    return is_first and row.workload.startswith(study.mixes[0]) and row.policy not in (FIXED, *POLICIES[3:6])


def parser() -> argparse.ArgumentParser:
    def numbers(text: str) -> list[float]:
        return [float(each) for each in text.split(",") if each]

    def names(text: str) -> list[str]:
        return [each.strip() for each in text.split(",") if each.strip()]

    def one_of(known: dict[str, object]) -> object:
        def check(text: str) -> list[str]:
            wrong = [each for each in names(text) if each not in known]
            if wrong:
                raise argparse.ArgumentTypeError(f"no mix {', '.join(wrong)}; there are {', '.join(known)}")
            return names(text)

        return check

    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--traces", metavar="DIR", help="folder of recorded workflows")
    made.add_argument("--generated", action="store_true", help="made-up workflows even where recorded ones are there")
    made.add_argument("--families", type=names, default=[], metavar="A,B", help="only these families of workflows")
    made.add_argument("--boot", type=numbers, default=[45.0, 90.0, 180.0], metavar="S,S", help="median boot seconds")
    made.add_argument("--seeds", type=int, default=3, metavar="N", help="so many seeds, from --first-seed on")
    made.add_argument("--first-seed", type=int, default=1, metavar="N")
    made.add_argument("--mixes", type=one_of(dict(MIXES)), default=["mixed"], metavar="A,B", help=", ".join(MIXES))
    made.add_argument("--days-train", type=float, default=7.0)
    made.add_argument("--days-test", type=float, default=7.0)
    made.add_argument("--concurrency", type=int, default=16, help="tasks of a run at once; 0: no limit (deferrable)")
    made.add_argument("--most-tasks", type=int, default=320, help="leave out workflows with more tasks")
    made.add_argument("--without-heaviest", action="store_true", help="leave out the DAG with the most work")
    made.add_argument("--policies", type=names, default=[], metavar="A,B", help=f"some of: {', '.join(POLICIES)}")
    made.add_argument("--scenarios", action="store_true", help=f"also {ELASTIC} with wrong forecasts, and a bad cloud")
    made.add_argument("--tick-seconds", type=float, default=1.0, help="the controller's tick")
    made.add_argument("--plot", type=Path, metavar="FILE.svg", help="nodes over time in the first world")
    made.add_argument("--output", choices=("table", "json"), default="table")
    return made


if __name__ == "__main__":
    sys.exit(main())
