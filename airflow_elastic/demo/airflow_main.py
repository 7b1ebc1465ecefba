"""Runs an Airflow command after importing what its forked children need anyway. Run as a module.

LocalExecutor forks its workers and they fork a process per task: modules that the scheduler has imported before are
shared by all of them, while each would spend seconds of CPU on importing them itself.
"""

from __future__ import annotations

import sys
from importlib import import_module

__all__ = ["main"]

_PRELOAD = {
    "scheduler": (
        "airflow.sdk.execution_time.task_runner",
        "airflow.sdk.execution_time.supervisor",
        "airflow.providers.cncf.kubernetes.operators.pod",
    ),
}


def main(argv: list[str]) -> None:
    """Run ``airflow`` with ``argv`` in this process."""
    sys.argv = ["airflow", *argv]
    airflow_main = import_module("airflow.__main__")  # first: it brings Airflow's configuration up in the right order
    for name in _PRELOAD.get(argv[0], ()):
        import_module(name)
    airflow_main.main()


if __name__ == "__main__":
    main(sys.argv[1:])
