"""``airflow elastic simulate``: what other nodes, boot times or policies would have cost, in simulated time."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from airflow_elastic.cli.output import emit
from airflow_elastic.config import current_settings, load_settings
from airflow_elastic.errors import ConfigurationError
from airflow_elastic.model.settings import Mode, Settings
from airflow_elastic.simulator.cluster import PoolTruth
from airflow_elastic.simulator.compare import FIXED, Simulated, needed, policies, simulate
from airflow_elastic.simulator.generators import generated_noise, generated_workflows
from airflow_elastic.simulator.mixes import choose_workflows, recurring
from airflow_elastic.simulator.report import plot, rows_table
from airflow_elastic.simulator.study import study_settings
from airflow_elastic.simulator.traces import read_noise, read_workflows, traces_folder
from airflow_elastic.simulator.workload import Workload
from airflow_elastic.simulator.world import Conditions, truth_of

__all__ = ["run"]

_DEFAULT_BOOT_SECONDS = 90.0
_PLOTTED_POLICIES = 4
_TRAINING_DAYS = 7.0


def run(args: argparse.Namespace) -> None:
    """Simulate and print the comparison."""
    settings = _settings(args)
    workload = _workload(args, settings)
    truths = _truths(args, settings)
    conditions = Conditions(seed=args.seed, truths=truths)
    try:
        chosen = policies([each.strip() for each in args.policies.split(",") if each.strip()])
    except ValueError as error:
        raise ConfigurationError(str(error)) from error
    results = _simulated(workload, settings, conditions, chosen)
    if args.plot:
        _write_plot(Path(args.plot), results, workload, settings, conditions)
    rows = [each.row for each in results]
    about = {
        "workload": workload.name,
        "capacity": settings.source,
        "days": round((workload.ends_at - workload.starts_at) / 86400, 3),
        "runs": len(workload.test),
        "tasks": workload.tasks,
        "seed": args.seed,
    }

    def table() -> RenderableType:
        text = (
            f"{workload.name}: {len(workload.test)} runs and {workload.tasks} tasks in {about['days']:g} day(s), "
            f"{len(workload.training)} earlier runs to learn from; capacity: {settings.source}"
        )
        note = (
            "cold: waited > 10 s for capacity · × OPT₀: to the cheapest plan without any wait · used: work / node-hours"
        )
        return Group(Text(text), rows_table(rows), Text(note, style="dim"))

    emit(args, {**about, "rows": [row.as_dict() for row in rows]}, table)


def _settings(args: argparse.Namespace) -> Settings:
    settings = load_settings(args.file) if args.file else current_settings()
    if settings is None:
        settings = study_settings(args.boot or _DEFAULT_BOOT_SECONDS)
        settings = replace(settings, source="one node pool of 4 cpu, 16 GiB (no capacity file is configured)")
    if not settings.node_pools or not settings.classes:
        raise ConfigurationError(
            f"{settings.source or 'the settings'} declares no node pool or no class; declare at least one of each"
        )
    # Whatever the file's mode: the question is what managing would do.
    return replace(settings, mode=Mode.MANAGE)


def _truths(args: argparse.Namespace, settings: Settings) -> dict[str, PoolTruth]:
    truths = {}
    for pool in settings.node_pools:
        truth = truth_of(settings, pool.name)
        if args.boot:
            truth = replace(truth, boot_seconds=args.boot, boot_seconds_p95=2 * args.boot)
        truths[pool.name] = replace(truth, reclaim_mean_seconds=args.reclaim)
    return truths


def _workload(args: argparse.Namespace, settings: Settings) -> Workload:
    if args.workload in ("auto", "history"):
        from airflow_elastic.simulator.own_history import own_workload

        try:
            return own_workload(settings, time.time(), args.days)
        except ValueError as error:
            if args.workload == "history":
                raise ConfigurationError(
                    f"there is no history to replay: {error}; run some DAGs first or use --workload generated"
                ) from error
    folder = traces_folder() if args.workload != "generated" else None
    if folder is None:
        if args.workload == "traces":
            raise ConfigurationError(
                "no recorded workflows are here; name their folder in AIRFLOW_ELASTIC_TRACES, "
                "or take --workload generated"
            )
        recordings, noise, name = generated_workflows(args.seed), generated_noise(args.seed), "made-up workflows"
    else:
        recordings, noise, name = read_workflows(folder), read_noise(folder), f"recorded workflows ({folder.name})"
    dags = choose_workflows(recordings, args.seed)
    return recurring(name, dags, noise, args.seed, days_train=_TRAINING_DAYS, days_test=args.days)


def _simulated(
    workload: Workload, settings: Settings, conditions: Conditions, chosen: Sequence[tuple[str, str]]
) -> list[Simulated]:
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True) as bar:
        job = bar.add_task("preparing", total=float(len(chosen)))
        tell: Callable[[str, float], None] = lambda label, share: bar.update(  # noqa: E731
            job, description=label, completed=len(results) + share
        )
        results: list[Simulated] = []
        for each in simulate(workload, settings, conditions, chosen, progress=tell):
            results.append(each)
            bar.update(job, completed=float(len(results)))
    return results


def _write_plot(
    path: Path, results: Sequence[Simulated], workload: Workload, settings: Settings, conditions: Conditions
) -> None:
    shown = [each for each in results if each.row.policy != FIXED][-_PLOTTED_POLICIES:] or list(results)
    total: dict[float, int] = {}
    for steps in needed(workload, settings, conditions).values():
        before = 0
        for at, nodes in steps:
            total[at] = total.get(at, 0) + nodes - before
            before = nodes
    steps, count = [], 0
    for at in sorted(total):
        count += total[at]
        steps.append((at, count))
    try:
        path.write_text(plot(shown, steps, workload.name), encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"the plot cannot be written to {path}: {error.strerror}; name another file"
        ) from error
