from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("airflow", "kubernetes", "kubernetes_asyncio", "sqlalchemy", "fastapi", "pydantic", "numpy", "uvicorn")


def modules_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "module", ["airflow_elastic", "airflow_elastic.provider_info", "airflow_elastic.operators.tagging"]
)
def test_what_every_process_imports_is_light(module: str) -> None:
    assert modules_after(f"import {module}") & set(HEAVY) == set()


def test_the_policy_imports_nothing_of_ours_that_is_heavy() -> None:
    # airflow.policies is in each Airflow process anyway; a stand-in keeps its own imports out of the count.
    code = (
        "import types\n"
        "stub = types.ModuleType('airflow.policies'); stub.hookimpl = lambda function: function\n"
        "sys.modules['airflow'] = types.ModuleType('airflow'); sys.modules['airflow.policies'] = stub\n"
        "import airflow_elastic.policies as policies\n"
        "policies.task_policy(object())"
    )
    assert modules_after(code) & (set(HEAVY) - {"airflow"}) == set()
