"""``airflow elastic demo``: the whole product on this machine, in a temporary home."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

__all__ = ["run"]


def run(args: argparse.Namespace) -> None:
    """Run the demo and exit with its code."""
    # By name: the demo is a surface of its own, above the command line in the order of layers.
    runner = import_module("airflow_elastic.demo.run")
    sys.exit(
        runner.demo(
            once=args.once,
            output=args.output,
            port=args.port or 0,
            speed=args.speed or 1.0,
            keep=Path(args.keep) if args.keep else None,
        )
    )
