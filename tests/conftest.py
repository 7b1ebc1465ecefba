"""An Airflow home of the tests' own; tests on the real cluster run where they can, where not, one loud line says so."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator

if "AIRFLOW_HOME" not in os.environ:  # before anything imports Airflow, which reads it at once
    os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="airflow-elastic-tests-")
    atexit.register(shutil.rmtree, os.environ["AIRFLOW_HOME"], ignore_errors=True)

import pytest
from realcluster.cluster import RealCluster
from realcluster.layout import ClusterOptions
from realcluster.selection import reason_to_skip

_left_out: list[str] = []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marked = [item for item in items if item.get_closest_marker("realcluster")]
    if marked and (reason := reason_to_skip()):
        _left_out.append(f"THE REAL CLUSTER WAS NOT TESTED ({len(marked)} tests): {reason}")
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=f"real cluster: {reason}"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in _left_out:
        terminalreporter.write_line(line, yellow=True, bold=True)


@pytest.fixture(scope="session")
def real_cluster() -> Iterator[RealCluster]:
    """A running cluster with one real node, simulated nodes and Karpenter, shared by all tests of the session."""
    with RealCluster(ClusterOptions(karpenter=True)) as cluster:
        yield cluster
