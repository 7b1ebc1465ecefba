"""The command group ``airflow elastic``: names, arguments and help.

Every ``airflow`` command imports this module, so it imports nothing but Airflow's own (already loaded) argument types.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from airflow.cli.cli_config import ActionCommand, Arg, CLICommand, GroupCommand

__all__ = ["get_elastic_cli_commands"]


def _lazily(name: str) -> Callable[[argparse.Namespace], None]:
    """Return a function that imports the command's module when it is called."""

    def command(args: argparse.Namespace) -> None:
        from airflow_elastic.cli.runner import run_command

        run_command(name, args)

    command.__name__ = f"elastic_{name}"
    return command


def _port(value: str) -> int:
    port = int(value)
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"{value} is not a port; write 0 (any free one) to 65535")
    return port


def _days(value: str) -> float:
    days = float(value)
    if not 0 < days <= 366:
        raise argparse.ArgumentTypeError(f"{value} is no number of days; write up to 366")
    return days


def _seconds(value: str) -> float:
    seconds = float(value)
    if not 1 <= seconds <= 30 * 86400:
        raise argparse.ArgumentTypeError(f"{value} is no time in seconds; write 1 to 2592000")
    return seconds


def _speed(value: str) -> float:
    speed = float(value)
    if not 0.1 <= speed <= 1000:
        raise argparse.ArgumentTypeError(f"{value} is no speed of time; write 0.1 to 1000 (1: as it is)")
    return speed


ARG_OUTPUT = Arg(
    ("-o", "--output"),
    help="A table for people or JSON for programs (default: table)",
    choices=("table", "json"),
    default="table",
)
ARG_WRITE = Arg(("--write",), metavar="FILE", help="Write the proposed capacity file there (default: only show it)")
ARG_FORCE = Arg(("--force",), action="store_true", help="Overwrite FILE if it exists")
ARG_FILE = Arg(
    ("file",),
    metavar="FILE",
    nargs="?",
    default=None,
    help="Capacity file (default: the one that option capacity_file of section elastic names)",
)
ARG_SCHEMA = Arg(
    ("--schema",), action="store_true", help="Print the capacity file's JSON schema for editors, check nothing"
)
ARG_WATCH = Arg(("--watch",), action="store_true", help="Stay and show changes live, until Ctrl-C")
ARG_SUBJECT = Arg(
    ("subject",),
    metavar="SUBJECT",
    nargs="+",
    help="A DAG id, a DAG run id, DAG_ID RUN_ID, DAG_ID.TASK_ID, a node's, a node pool's or an Airflow pool's name",
)
ARG_CONTROLLER_ONCE = Arg(("--once",), action="store_true", help="Observe, plan and act a single time, then end")
ARG_DEMO_ONCE = Arg(
    ("--once",),
    action="store_true",
    help="Run until two scheduled runs of each example DAG have finished, print the figures, end",
)
ARG_PORT = Arg(
    ("--port",), type=_port, default=0, metavar="N", help="Port of Airflow's UI on 127.0.0.1 (default: any free one)"
)
ARG_SPEED = Arg(
    ("--speed",), type=_speed, default=1.0, metavar="X", help="Speed of time for node boots: 2 boots in half the time"
)
ARG_KEEP = Arg(
    ("--keep",), metavar="DIR", default=None, help="Keep Airflow's home, logs and the cluster's event log there"
)

ARG_SIMULATE_FILE = Arg(
    ("--file",),
    metavar="FILE",
    default=None,
    help="Another capacity file than the configured one: what would it do?",
)
ARG_WORKLOAD = Arg(
    ("--workload",),
    choices=("auto", "history", "traces", "generated"),
    default="auto",
    help="What runs: this installation's own past, recorded workflows, made-up ones (auto: the first that there is)",
)
ARG_DAYS = Arg(("--days",), type=_days, default=7.0, metavar="N", help="Days to measure (default: 7)")
ARG_BOOT = Arg(
    ("--boot",),
    type=_seconds,
    default=None,
    metavar="SECONDS",
    help="Median boot time of nodes (default: the capacity file's)",
)
ARG_POLICIES = Arg(
    ("--policies",), metavar="A,B", default="", help="Only these policies, by name as in the table (default: all)"
)
ARG_SEED = Arg(("--seed",), type=int, default=1, metavar="N", help="Seed of boot times and of made-up workloads")
ARG_RECLAIM = Arg(
    ("--reclaim",),
    type=_seconds,
    default=0.0,
    metavar="SECONDS",
    help="Spot: mean life of a node until its cloud takes it back (default: never)",
)
ARG_PLOT = Arg(("--plot",), metavar="FILE", default=None, help="Write a plot of nodes over time there, as SVG")


def get_elastic_cli_commands() -> list[CLICommand]:
    """Return the group ``elastic`` for Airflow's provider manager."""

    def command(name: str, text: str, *args: Arg, description: str = "") -> ActionCommand:
        return ActionCommand(
            name=name, help=text, description=description or None, func=_lazily(name), args=(*args, ARG_OUTPUT)
        )

    return [
        GroupCommand(
            name="elastic",
            help="Machines below Airflow: node pools, true pool slots, pre-warmed runs",
            description=(
                "airflow-elastic makes Airflow aware of the machines below it. Begin with 'init', which proposes a "
                "capacity file from what your cluster has; 'demo' shows all of it on this machine alone."
            ),
            subcommands=(
                command(
                    "init",
                    "Propose a capacity file from the node pools of the cluster",
                    ARG_WRITE,
                    ARG_FORCE,
                    description=(
                        "Looks at the cluster's nodes, groups them by the labels of well-known node pool managers and "
                        "proposes a commented capacity file in mode observe. Changes nothing in the cluster."
                    ),
                ),
                command(
                    "validate",
                    "Check a capacity file: all mistakes at once, or what it says",
                    ARG_FILE,
                    ARG_SCHEMA,
                    description="Exit code 0: the file is good. 1: it is not; every mistake is listed with its place.",
                ),
                command(
                    "status",
                    "Node pools, nodes, slots against usable capacity, coming runs",
                    ARG_WATCH,
                    description="Shows what the controller last published.",
                ),
                command("plan", "What the controller would do now and why, without doing it"),
                command("explain", "Why a DAG, run, task, node or pool stands as it does", ARG_SUBJECT),
                command(
                    "controller",
                    "Run the controller in this process (for a deployment of its own)",
                    ARG_CONTROLLER_ONCE,
                ),
                command(
                    "simulate",
                    "What other nodes, boot times or policies would have cost, in simulated time",
                    ARG_SIMULATE_FILE,
                    ARG_WORKLOAD,
                    ARG_DAYS,
                    ARG_BOOT,
                    ARG_RECLAIM,
                    ARG_POLICIES,
                    ARG_SEED,
                    ARG_PLOT,
                    description=(
                        "Runs the controller's own planner and the usual autoscalers over the same workload in a "
                        "simulated cluster: node-hours, cost, tasks that waited. Changes nothing."
                    ),
                ),
                command(
                    "demo",
                    "A real Airflow on a simulated elastic cluster, on this machine alone",
                    ARG_DEMO_ONCE,
                    ARG_PORT,
                    ARG_SPEED,
                    ARG_KEEP,
                    description="Needs no Kubernetes. Everything is stopped and removed when it ends (Ctrl-C).",
                ),
            ),
        )
    ]
