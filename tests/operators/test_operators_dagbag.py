"""The whole way of a DAG file: real capacity file, Airflow's own parse step, policy by entry point, serialization."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.serialization.serialized_objects import DagSerialization

from airflow_elastic.config import current_settings
from airflow_elastic.model.carrier import read_carrier

CAPACITY_FILE = """
version: 1
mode: manage
default_class: burst
node_pools:
  fixed:
    selector: {example.org/pool: fixed}
    shape: {cpu: "4", memory: 8Gi, pods: 20}
    min_nodes: 1
    max_nodes: 1
    provider: none
  elastic:
    selector: {example.org/pool: elastic}
    shape: {cpu: "4", memory: 8Gi, pods: 20}
    max_nodes: 6
    provider: placeholder
classes:
  core: {node_pools: [fixed], airflow_pool: core, slot_shape: {cpu: "1", memory: 1Gi}}
  burst: {node_pools: [elastic], airflow_pool: burst, slot_shape: {cpu: "1", memory: 1Gi}}
rules:
  - {class: core, dag_id: "billing_*"}
"""
DAG_FILE = """
from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator
from airflow.sdk import DAG, task
from airflow_elastic import ElasticKubernetesPodOperator

with DAG("billing_eu", default_args={"image": "busybox"}):
    KubernetesPodOperator(task_id="plain")
    ElasticKubernetesPodOperator(task_id="ours", container_resources={"requests": {"cpu": CPU}})
    ElasticKubernetesPodOperator.partial(task_id="mapped", capacity_class="burst").expand(arguments=[["1"], ["2"]])

    @task.elastic_kubernetes(image="python")
    def decorated():
        return 1

    decorated()
"""


@pytest.fixture
def parse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("airflow_elastic.config.current_settings", current_settings)
    capacity_file = tmp_path / "capacity.yaml"
    monkeypatch.setenv("AIRFLOW__ELASTIC__CAPACITY_FILE", str(capacity_file))

    def parse(cpu: str = "1500m", capacity: str = CAPACITY_FILE) -> DagBag:
        capacity_file.write_text(capacity)
        dags = tmp_path / "dags"
        dags.mkdir(exist_ok=True)
        (dags / "billing.py").write_text(DAG_FILE.replace("CPU", repr(cpu)))
        return DagBag(dag_folder=str(dags), load_op_links=False)

    return parse


def tasks(bag: DagBag) -> dict[str, Any]:
    assert bag.import_errors == {}
    document = json.loads(json.dumps(DagSerialization.to_dict(bag.dags["billing_eu"])))
    return {task.task_id: task for task in DagSerialization.from_dict(document).tasks}


def test_every_pod_task_of_a_dag_file_is_tagged(parse) -> None:
    found = tasks(parse())
    assert {name: (task.pool, task.pool_slots) for name, task in found.items()} == {
        "plain": ("core", 1),
        "ours": ("core", 2),
        "mapped": ("burst", 1),
        "decorated": ("core", 1),
    }
    assert {name: read_carrier(task.executor_config).capacity_class for name, task in found.items()} == {
        "plain": "core",
        "ours": "core",
        "mapped": "burst",
        "decorated": "core",
    }


def test_the_import_error_of_a_task_too_wide_says_what_to_do(parse) -> None:
    bag = parse(cpu="9")
    (error,) = bag.import_errors.values()
    assert "billing_eu.ours asks for cpu 9" in error
    assert "lower its requests or give its class a larger node pool" in error


def test_a_worker_runs_the_other_tasks_of_that_file(parse, monkeypatch) -> None:
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "billing_eu")
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_TASK_ID", "plain")
    assert "plain" in tasks(parse(cpu="9"))


def test_with_a_broken_capacity_file_dags_are_parsed_as_without(parse) -> None:
    found = tasks(parse(capacity=CAPACITY_FILE.replace("classes:", "clases:")))
    assert {task.pool for task in found.values()} == {"default_pool"}
    assert all(read_carrier(task.executor_config) is None for task in found.values())
