from __future__ import annotations

import json
import subprocess
import sys
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.console import Console
from simulator_worlds import daily, fan_out, settings

from airflow_elastic.simulator.compare import needed, policies, simulate
from airflow_elastic.simulator.report import medians, plot, rows_table
from airflow_elastic.simulator.svg import Curve, step_chart
from airflow_elastic.simulator.world import Conditions

ROOT = Path(__file__).resolve().parents[2]


def test_table_and_plot_show_every_policy() -> None:
    workload = daily(fan_out(6, 120.0), days=1)
    results = list(simulate(workload, settings(), Conditions(), policies(["karpenter", "ski-rental timer"])))
    console = Console(width=200, record=True, file=StringIO())
    console.print(rows_table([each.row for each in results], "title"))
    text = console.export_text()
    assert "karpenter" in text
    assert "ski-rental timer" in text
    svg = plot(results, needed(workload, settings(), Conditions())["burst"], "a <plot>")
    root = ElementTree.fromstring(svg)
    words = "".join(root.itertext())
    assert "a <plot>" in words
    assert "karpenter" in words
    assert len(root.findall(".//{*}polyline")) == 2


def test_a_plot_of_nothing_is_still_a_plot() -> None:
    assert ElementTree.fromstring(step_chart("empty", [Curve("none", [])], 0.0, 3600.0)).tag.endswith("svg")


def test_medians_are_over_seeds() -> None:
    workload = daily(fan_out(6, 120.0), days=1)
    rows = [
        each.row
        for seed in (1, 2, 3)
        for each in simulate(workload, settings(), Conditions(seed=seed), policies(["karpenter"]))
    ]
    (middle,) = medians(rows)
    assert middle["samples"] == 3
    assert middle["node_hours"] == sorted(row.node_hours for row in rows)[1]


@pytest.mark.parametrize("output", ["json", "table"])
def test_the_benchmark_runs_as_its_documentation_says(output: str, tmp_path: Path) -> None:
    command = [
        sys.executable, str(ROOT / "benchmarks" / "capacity.py"), "--generated", "--boot", "60", "--seeds", "1",
        "--days-test", "0.1", "--families", "chain", "--policies", "karpenter,elastic", "--tick-seconds", "5",
        "--plot", str(tmp_path / "plot.svg"), "--output", output,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "plot.svg").read_text().startswith("<svg")
    if output == "json":
        rows = json.loads(done.stdout)["rows"]
        assert [row["policy"] for row in rows] == ["karpenter", "elastic"]
        wanted = {"policy", "boot_seconds", "node_hours", "x_opt0", "cold_share", "wait_p95_seconds"}
        assert wanted | {"first_task_wait_p95_seconds", "flips", "cost"} <= rows[0].keys()
    else:
        assert "karpenter" in done.stdout


def test_the_benchmark_refuses_what_it_does_not_know() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "capacity.py"), "--generated", "--policies", "nobody"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)
    assert done.returncode == 1
    assert "no policy nobody" in done.stderr
