"""What importing us costs: fresh interpreters, in alternating pairs, so that a busy machine slows both sides alike.

    python benchmarks/imports.py [--pairs N] [--json]

Prints a table, then one line of JSON. Aim: the elastic operator adds less than 50 ms to KubernetesPodOperator.

``added_per_pair`` is the difference of two interpreters, ``added_in_one_process`` what we take when the provider is
there already. Both are measured without Python's garbage collector: Airflow and the provider leave so many objects
behind that its next full pass takes more than 100 ms, and it is chance into whose import (or DAG file) that falls.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

PLAIN = "from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator"
ELASTIC = "from airflow_elastic import ElasticKubernetesPodOperator"
PACKAGE = "import airflow_elastic"

# Processor time, not wall time: it is what a worker pays, and other work on the machine changes it least.
MEASURE = """
import gc, time
gc.disable()
begin = time.process_time()
{code}
print(time.process_time() - begin)
"""


def seconds(code: str, environment: dict[str, str]) -> float:
    done = subprocess.run(
        [sys.executable, "-c", MEASURE.format(code=code)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return float(done.stdout.split()[-1])


def figures(samples: list[float]) -> dict[str, float]:
    return {
        "median_ms": round(1000 * statistics.median(samples), 2),
        "least_ms": round(1000 * min(samples), 2),
        "most_ms": round(1000 * max(samples), 2),
    }


def measure(pairs: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "AIRFLOW_HOME": home}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for code in (PLAIN, ELASTIC, PACKAGE):  # compiles bytecode and fills the disk cache
            seconds(code, environment)
        package = [seconds(PACKAGE, environment) for _ in range(pairs)]
        plain: list[float] = []
        elastic: list[float] = []
        added: list[float] = []
        for index in range(pairs):
            order = [(PLAIN, plain), (ELASTIC, elastic)]
            for code, samples in order if index % 2 else reversed(order):
                samples.append(seconds(code, environment))
            added.append(elastic[-1] - plain[-1])
        # Inside one process, after the provider: without the noise of two separate imports of Airflow.
        on_top = [float(_on_top(environment)) for _ in range(pairs)]
    return {
        "pairs": pairs,
        "airflow_elastic": figures(package),
        "KubernetesPodOperator": figures(plain),
        "ElasticKubernetesPodOperator": figures(elastic),
        "added_per_pair": figures(added),
        "added_in_one_process": figures(on_top),
    }


def _on_top(environment: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PLAIN + MEASURE.format(code=ELASTIC)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return done.stdout.split()[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5, help="interpreters of each kind (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print the JSON line only")
    arguments = parser.parse_args()
    result = measure(max(1, arguments.pairs))
    if not arguments.json:
        from rich.console import Console
        from rich.table import Table

        table = Table(title="Import cost, processor time in milliseconds", title_justify="left")
        for heading in ("import", "median", "least", "most"):
            table.add_column(heading, justify="left" if heading == "import" else "right")
        for name, values in result.items():
            if isinstance(values, dict):
                table.add_row(name, *(f"{values[key]:.1f}" for key in ("median_ms", "least_ms", "most_ms")))
        Console().print(table)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
