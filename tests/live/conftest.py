"""One real Airflow (Postgres, LocalExecutor, all four processes) on the embedded cluster, shared by the live tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_elastic.demo.progress import Progress
from airflow_elastic.demo.stack import Stack
from airflow_elastic.demo.variant import Variant

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from live_stack import LiveStack
from postgres import temporary_postgres

BOOT_SECONDS = 12.0

_DAG_FILE = """
from datetime import datetime

from airflow.sdk import DAG
from kubernetes.client import models as k8s

from airflow_elastic import ElasticKubernetesPodOperator

def pod(task_id, seconds, cpu="1"):
    return ElasticKubernetesPodOperator(
        task_id=task_id, image="busybox:1.37", cmds=["sleep"], arguments=[str(seconds)], get_logs=False, retries=0,
        annotations={"airflow-elastic.io/run-seconds": str(seconds)},
        container_resources=k8s.V1ResourceRequirements(requests={"cpu": cpu, "memory": "512Mi"}),
    )

with DAG("live_manual", schedule=None, start_date=datetime(2026, 1, 1), catchup=False,
         default_args={"capacity_class": "burst"}):
    pod("first", 3) >> [pod("left", 3, "2"), pod("right", 3, "2")]

with DAG("live_scheduled", schedule="*/2 * * * *", start_date=datetime(2026, 1, 1), catchup=False, max_active_runs=1,
         default_args={"capacity_class": "prewarmed"}):
    pod("only", 5, "3")
"""

_POOL = {"airflow-elastic.io/node-pool": "{}"}


def _variant() -> Variant:
    shape = {"cpu": "4", "memory": "8Gi", "pods": "20"}
    elastic = {
        "shape": shape, "min_nodes": 0, "max_nodes": 4, "boot_seconds": BOOT_SECONDS, "boot_seconds_p95": 18,
        "provider": "scale",
    }  # fmt: skip
    slot = {"cpu": "1", "memory": "1Gi"}
    nodes = {"allocatable": shape, "max_nodes": 4, "boot_seconds_median": BOOT_SECONDS, "boot_seconds_p95": 18}
    return Variant(
        name="live",
        cluster={
            "node_pools": [
                {"name": "fixed", "allocatable": shape, "min_nodes": 2, "max_nodes": 3, "remove_seconds": 1},
                {"name": "elastic", **nodes, "remove_seconds": 2},
                {"name": "prewarmed", **nodes, "remove_seconds": 2},
            ]
        },
        capacity={
            "version": 1,
            "mode": "manage",
            "default_class": "burst",
            "node_pools": {
                "fixed": {
                    "selector": {"airflow-elastic.io/node-pool": "fixed"}, "shape": shape,
                    "min_nodes": 2, "max_nodes": 3, "provider": "none",
                },
                **{
                    name: {
                        **elastic,
                        "selector": {"airflow-elastic.io/node-pool": name},
                        "provider_options": {
                            "group": "embedded.airflow-elastic.io",
                            "version": "v1",
                            "plural": "nodepools",
                            "name": name,
                        },
                    }
                    for name in ("elastic", "prewarmed")
                },
            },
            "classes": {
                "core": {"node_pools": ["fixed"], "airflow_pool": "core", "slot_shape": slot},
                "burst": {"node_pools": ["elastic"], "airflow_pool": "burst", "slot_shape": slot, "evictable": True},
                "prewarmed": {
                    "node_pools": ["prewarmed"], "airflow_pool": "prewarmed", "slot_shape": slot, "evictable": True,
                },
            },
            "scaling": {
                "tick_seconds": 1, "horizon": "30m", "max_hold": "5m", "scale_in_cooldown": "5s",
                "prewarm_margin": "8s", "default_task": "10s",
            },
        },
        dag_files={"live.py": _DAG_FILE},
    )  # fmt: skip


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveStack]:
    """The running stack; everything ends with the session, by process id."""
    with temporary_postgres() as url:
        home = tmp_path_factory.mktemp("live")
        with Stack(_variant(), Progress(), keep=home, database_url=url) as stack:
            stack.start()
            yield LiveStack(stack)
