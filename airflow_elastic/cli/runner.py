"""Calls a command and turns what it raises into one message and an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module

from airflow_elastic.cli.output import complain
from airflow_elastic.errors import ElasticError, TemporaryError

__all__ = ["EXIT_INTERRUPTED", "EXIT_REFUSED", "EXIT_TEMPORARY", "run_command"]

EXIT_REFUSED = 1
"""Configuration is wrong, or what was asked cannot be done: a person has to change something."""
EXIT_TEMPORARY = 2
"""Something outside did not answer: the same command may work later."""
EXIT_INTERRUPTED = 130


def run_command(name: str, args: argparse.Namespace) -> None:
    """Run ``commands/NAME.py``.

    Raises:
        SystemExit: with one of the exit codes above when the command failed; its message is on stderr.
    """
    try:
        import_module(f"airflow_elastic.cli.commands.{name}").run(args)
        sys.stdout.flush()
    except TemporaryError as error:
        complain(str(error))
        raise SystemExit(EXIT_TEMPORARY) from None
    except ElasticError as error:
        complain(str(error))
        raise SystemExit(EXIT_REFUSED) from None
    except KeyboardInterrupt:
        raise SystemExit(EXIT_INTERRUPTED) from None
    except BrokenPipeError:
        # The reader (head, less) has gone; Python would complain again when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(EXIT_REFUSED) from None
