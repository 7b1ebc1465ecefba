"""One process before all others: migrates the metadata DB and leaves bytecode for what the others import.

Started at once, Airflow's four processes would each compile the same thousand modules of a fresh installation.
"""

from __future__ import annotations

__all__ = ["warm_bytecode_command"]

_MODULES = (
    "airflow.api_fastapi.app",
    "airflow.jobs.scheduler_job_runner",
    "airflow.jobs.triggerer_job_runner",
    "airflow.dag_processing.manager",
    "airflow.sdk.execution_time.task_runner",
    "airflow.providers.cncf.kubernetes.operators.pod",
    "airflow.providers.cncf.kubernetes.triggers.pod",
)


def warm_bytecode_command() -> str:
    """Return Python source that runs ``airflow db migrate`` and imports the modules whose bytecode is missing."""
    return f"""
import importlib.util, os, sys
from airflow_elastic.demo.airflow_main import main

main(["db", "migrate"])
missing = []
for name in {_MODULES!r}:
    spec = importlib.util.find_spec(name)
    if spec and spec.cached and not os.path.exists(spec.cached):
        missing.append(name)
for name in missing:
    importlib.import_module(name)
"""
