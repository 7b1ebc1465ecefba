"""The packaged capacity file, cluster and example DAGs belong together."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest

from airflow_elastic.config import parse_settings
from airflow_elastic.demo import variant
from airflow_elastic.demo.baseline import baseline_variant
from airflow_elastic.demo.measurement import classes_of, minimum_nodes
from airflow_elastic.embedded.config import config_from_dict
from airflow_elastic.model.settings import Mode

DEMO = variant.demo_variant()
CAPACITY_TEXT = (variant._HERE / "capacity.yaml").read_text()
DAG_NAMES = ["annotated_training", "billing_core", "mapped_partitions", "nightly_etl", "reports_burst"]


def test_the_capacity_file_is_good_and_manages() -> None:
    settings = parse_settings(CAPACITY_TEXT, "capacity.yaml")
    assert settings.mode is Mode.MANAGE
    assert {pool.provider for pool in settings.node_pools} == {"none", "scale", "placeholder"}


def test_the_cluster_has_the_node_pools_of_the_capacity_file() -> None:
    settings = parse_settings(CAPACITY_TEXT, "capacity.yaml")
    cluster = {pool.name: pool for pool in config_from_dict(DEMO.cluster).node_pools}
    assert set(cluster) == {pool.name for pool in settings.node_pools}
    for pool in settings.node_pools:
        assert (pool.min_nodes, pool.max_nodes) == (cluster[pool.name].min_nodes, cluster[pool.name].max_nodes)
        assert (cluster[pool.name].autoscaler is not None) == (pool.provider == "placeholder")


def test_the_reporter_reads_the_capacity_file_as_the_product_does() -> None:
    settings = parse_settings(CAPACITY_TEXT, "capacity.yaml")
    for each, ours in zip(classes_of(DEMO.capacity), settings.classes, strict=True):
        assert (each.name, each.airflow_pool, each.node_pools) == (ours.name, ours.airflow_pool, ours.node_pools)
        assert each.slot_shape == dict(ours.slot_shape.amounts)
    assert minimum_nodes(DEMO.capacity) == {pool.name: pool.min_nodes for pool in settings.node_pools}


@pytest.mark.parametrize("name", DAG_NAMES)
def test_an_example_names_the_recorded_workflow_that_it_follows(name: str) -> None:
    text = DEMO.dag_files[f"{name}.py"]
    document = next(
        statement.value.value
        for statement in ast.parse(text).body
        if isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") == "DOC"
    )
    assert "WfCommons WfInstances" in document
    assert re.search(r"instance\s+`[a-z0-9-]+-001`", document)
    assert f'"{name}"' in text


def test_the_examples_are_all_there() -> None:
    assert sorted(DEMO.dag_files) == [f"{name}.py" for name in DAG_NAMES]


def test_the_baseline_has_the_same_dags_without_us() -> None:
    baseline = baseline_variant(DEMO)
    assert baseline.controller == "off"
    assert set(baseline.dag_files) == {*DEMO.dag_files, "plain_pods.py", ".airflowignore"}
    for name in DEMO.dag_files:
        assert "from airflow_elastic" not in baseline.dag_files[name]
    assert baseline.static_pools == {"core": 4, "burst": 24, "batch": 16}
    autoscalers: dict[str, Any] = {pool["name"]: pool.get("autoscaler") for pool in baseline.cluster["node_pools"]}
    ours = next(pool["autoscaler"] for pool in DEMO.cluster["node_pools"] if pool["name"] == "autoscaled")
    assert autoscalers == {"fixed": None, "elastic": ours, "autoscaled": ours}
    ast.parse(baseline.dag_files["plain_pods.py"])
    config_from_dict(baseline.cluster)
