"""`airflow elastic demo`: brings the stack up, shows it, measures it, ends it."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from airflow_elastic.demo.observer import Observer
from airflow_elastic.demo.progress import Progress
from airflow_elastic.demo.report import figures
from airflow_elastic.demo.scenario import RUNS_OF_EACH, Scenario
from airflow_elastic.demo.stack import Stack
from airflow_elastic.demo.variant import demo_variant
from airflow_elastic.demo.verdict import complaints
from airflow_elastic.errors import ElasticError

__all__ = ["DATABASE_VARIABLE", "ONCE_SECONDS", "demo", "observed"]

DATABASE_VARIABLE = "AIRFLOW_ELASTIC_DEMO_DATABASE"
"""URL of an empty PostgreSQL database (``postgresql+psycopg2://…``) to use instead of SQLite."""

ONCE_SECONDS = 480.0


def demo(*, once: bool, output: str, port: int = 0, speed: float = 1.0, keep: Path | None = None) -> int:
    """Run the demo and return the exit code: 0 only if nothing failed.

    ``once``: until two scheduled runs of each DAG have finished, else until Ctrl-C. Progress goes to stderr, the report
    (``output``: ``table`` or ``json``) to stdout.
    """
    progress = Progress()
    began_at = time.monotonic()
    with _terminable():
        try:
            variant = demo_variant()
            with Stack(
                variant,
                progress,
                keep=keep,
                port=port,
                speed=speed,
                database_url=os.environ.get(DATABASE_VARIABLE, ""),
            ) as stack:
                stack.start()
                report = observed(stack, progress, once=once, deadline=began_at + ONCE_SECONDS)
                progress.say("stopping everything…")
            progress.say(f"everything is stopped; logs are in {keep}" if keep else "everything is stopped and removed")
        except KeyboardInterrupt:
            progress.say("stopped before Airflow was up; nothing is left behind")
            return 130
        except ElasticError as error:
            progress.say(f"the demo cannot go on: {error}")
            return 1
    problems = report["detail"]["problems"]
    _print_report(report, output)
    for problem in problems if once else ():
        print(f"failed: {problem}", file=sys.stderr)  # noqa: T201 - the command's own output
    return 1 if once and problems else 0


def observed(stack: Stack, progress: Progress, *, once: bool, deadline: float) -> dict[str, Any]:
    """Let a started stack run its DAGs and return the report (see ``demo``; ``deadline``: ``time.monotonic``).

    Raises:
        ComponentDied: a part of the stack ended.
    """
    observer = Observer(stack)
    try:
        if stack.variant.controller != "off":
            stack.wait_for_controller(observer.controller_has_published)
        observer.start()
        progress.say(f"Airflow: {stack.api.url}   elastic page: {stack.api.url}/elastic/   (no login)")
        unfinished: list[str] = []
        try:
            with _shown(observer, stack.api.url, progress) as show:
                scenario = Scenario(stack.api, observer, check=stack.check, show=show)
                if once:
                    unfinished = scenario.run_once(deadline)
                else:
                    scenario.run_for_ever()
        except KeyboardInterrupt:
            if once:
                unfinished = ["interrupted"]
        return _report(observer, unfinished)
    finally:
        observer.stop()


def _report(observer: Observer, unfinished: list[str]) -> dict[str, Any]:
    """Return the figures as of now, with what is wrong under ``detail.problems``."""
    observer.sampler.stop()
    observer.refresh()
    report = figures(observer.measurement())
    report["detail"]["problems"] = complaints(report, observer.min_nodes, unfinished, RUNS_OF_EACH)
    return report


@contextmanager
def _shown(observer: Observer, url: str, progress: Progress) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows the present picture: tables in a terminal, a line now and then elsewhere."""
    from airflow_elastic.demo.view import live_view

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda headline: progress.step(headline, _one_line(observer))
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield lambda headline: live.update(live_view(observer, url, headline), refresh=True)


def _one_line(observer: Observer) -> str:
    nodes = ", ".join(f"{each.pool} {each.usable}+{each.booting}" for each in observer.node_counts())
    slots = ", ".join(f"{each.pool} {each.slots}/{each.usable}" for each in observer.pool_slots())
    return f"nodes {nodes}; slots/usable {slots}"


def _print_report(report: dict[str, Any], output: str) -> None:
    if output == "json":
        print(json.dumps(report))  # noqa: T201 - the command's own output
        return
    table = Table("figure", title="Measured from outside the controller", title_justify="left")
    table.add_column("value", justify="right")
    for name, value in report.items():
        if name != "detail":
            table.add_row(name, str(value))
    Console().print(table)


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM end the demo as Ctrl-C does."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
