from __future__ import annotations

import subprocess
import sys

import pytest

from airflow_elastic.errors import ConfigurationError
from airflow_elastic.kubernetes.placement import node_affinity, placement_for
from airflow_elastic.model.capacity_class import CapacityClass
from airflow_elastic.model.carrier import TaskCapacity
from airflow_elastic.model.labels import LABEL_CAPACITY_CLASS
from airflow_elastic.model.node_pool import NodePool, Taint
from airflow_elastic.model.resources import Resources
from airflow_elastic.model.settings import Settings

SHAPE = Resources.of(cpu=4000, pods=20)
SPOT = NodePool("spot", (("pool", "spot"),), SHAPE, taints=(Taint("spot", "true"), Taint("dedicated", effect="")))
PLAIN = NodePool("plain", (("pool", "plain"), ("arch", "amd64")), SHAPE)
BURST = CapacityClass(
    "burst", ("spot", "plain"), "burst", Resources.of(cpu=1000), "batch-low", True, tolerations=(("gpu", "", ""),)
)
SETTINGS = Settings(node_pools=(SPOT, PLAIN), classes=(BURST,), source="capacity.yaml")


def test_pools_are_admitted_in_the_order_of_the_class():
    affinity = placement_for(SETTINGS, TaskCapacity("burst")).node_affinity
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [term["matchExpressions"][-1]["values"] for term in terms] == [["spot"], ["plain"]]
    assert [each["key"] for each in terms[1]["matchExpressions"]] == ["arch", "pool"]
    preferred = affinity["preferredDuringSchedulingIgnoredDuringExecution"]
    assert [each["weight"] for each in preferred] == [100, 50]
    assert preferred[0]["preference"] == terms[0]


def test_a_task_bound_to_one_pool_has_no_preference_and_only_that_pools_tolerations():
    placement = placement_for(SETTINGS, TaskCapacity("burst", node_pools=("plain",)))
    assert "preferredDuringSchedulingIgnoredDuringExecution" not in placement.node_affinity
    assert placement.tolerations == [{"key": "gpu", "operator": "Exists"}]


def test_tolerations_priority_and_label():
    placement = placement_for(SETTINGS, TaskCapacity(""))
    assert placement.tolerations == [
        {"key": "spot", "operator": "Equal", "value": "true", "effect": "NoSchedule"},
        {"key": "dedicated", "operator": "Exists"},
        {"key": "gpu", "operator": "Exists"},
    ]
    assert placement.priority_class_name == "batch-low"
    assert placement.labels == {LABEL_CAPACITY_CLASS: "burst"}
    assert placement.annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"


def test_weights_stay_valid_for_many_pools():
    pools = [NodePool(f"p{number}", (("pool", f"p{number}"),), SHAPE) for number in range(150)]
    weights = [each["weight"] for each in node_affinity(pools)["preferredDuringSchedulingIgnoredDuringExecution"]]
    assert min(weights) >= 1
    assert max(weights) == 100
    assert weights == sorted(weights, reverse=True)


@pytest.mark.parametrize("task", [TaskCapacity("brust"), TaskCapacity("burst", node_pools=("nowhere",))])
def test_unknown_names_are_answered_with_the_known_ones(task):
    with pytest.raises(ConfigurationError, match=r"capacity\.yaml.*known: "):
        placement_for(SETTINGS, task)


def test_placement_imports_no_kubernetes_client():
    code = "import sys, airflow_elastic.kubernetes.placement; print({'kubernetes', 'airflow'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
