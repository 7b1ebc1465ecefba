"""``airflow elastic controller``: the controller in the foreground; ``--once`` makes one tick and shows its plan."""

from __future__ import annotations

import argparse
import signal
import threading
import time
from typing import Any

from airflow_elastic.cli.output import emit
from airflow_elastic.controller.complaints import Complaints
from airflow_elastic.controller.loop import Controller, Tick
from airflow_elastic.controller.supervisor import end_with_parent
from airflow_elastic.controller.wiring import build_controller
from airflow_elastic.errors import ElasticError
from airflow_elastic.model.status import ControllerInfo, status_document

__all__ = ["run"]

_RETRY_SECONDS = 60.0


def run(args: argparse.Namespace) -> None:
    """Run until SIGTERM or SIGINT; capacity stays as it is at the end.

    Raises:
        ElasticError: the controller cannot start.
    """
    if args.once:
        _once(args)
        return
    stopping = threading.Event()
    running: list[Controller] = []

    def stop(*_: object) -> None:
        stopping.set()
        for controller in running:
            controller.stop()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    is_supervised = end_with_parent(stop)
    controller = _build(stopping, patiently=is_supervised)
    if controller is None:
        return
    running.append(controller)
    if stopping.is_set():
        controller.stop()
    controller.run()


def _build(stopping: threading.Event, *, patiently: bool) -> Controller | None:
    """Build the controller; under a supervisor a cluster that is missing is waited for, else the command ends."""
    complaints = Complaints(time.monotonic)
    while not stopping.is_set():
        try:
            return build_controller()
        except ElasticError as error:
            if not patiently:
                raise
            complaints.failed("starting the controller", error)
            stopping.wait(_RETRY_SECONDS)
    return None


def _once(args: argparse.Namespace) -> None:
    controller = build_controller()
    try:
        tick = controller.once()
    finally:
        controller.close()
    emit(args, _document(tick), lambda: _table(_document(tick)))


def _document(tick: Tick) -> dict[str, Any]:
    if tick.plan is None or tick.observation is None:
        return {"leads": False, "sentence": f"nothing was done: {tick.why_not}"}
    info = ControllerInfo(holder="", started_at=tick.observation.snapshot.now)
    return {"leads": tick.is_leader, **status_document(tick.observation.snapshot, tick.plan, info)}


def _table(document: dict[str, Any]) -> Any:
    from rich.table import Table

    table = Table(title=f"One tick, mode {document.get('mode', '–')}", title_justify="left")
    for column in ("what", "about", "was", "to", "why"):
        table.add_column(column, overflow="fold")
    if "actions" not in document:
        table.add_row("nothing", "controller", "", "", document["sentence"])
        return table
    if document["frozen"]:
        table.add_row("frozen", "everything", "", "", document["frozen"])
    for action in document["actions"]:
        table.add_row(action["kind"], action["about"], str(action["was"]), str(action["to"]), action["sentence"])
    for refusal in document["refusals"]:
        table.add_row("refused", refusal["about"], "", "", refusal["sentence"])
    if not table.row_count:
        table.add_row("nothing", "", "", "", "slots and nodes are as they should be")
    return table
