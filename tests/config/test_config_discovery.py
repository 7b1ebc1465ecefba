"""Node pools from the labels of well-known managers, and the file that is proposed for them."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_elastic.config import discover_settings, parse_settings, render_capacity_file
from airflow_elastic.config.discovery import example_settings
from airflow_elastic.config.node_labels import POOL_LABELS
from airflow_elastic.model.node_pool import CapacityType, Taint
from airflow_elastic.model.settings import Mode


def node(labels, *, cpu="3920m", memory="15Gi", taints=(), **allocatable):
    return {
        "metadata": {"name": "n", "labels": {"kubernetes.io/os": "linux", **labels}},
        "spec": {"taints": list(taints)} if taints else {},
        "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": "58", **allocatable}},
    }


def read_back(found):
    return parse_settings(render_capacity_file(found), found.source)


@pytest.mark.parametrize("label", POOL_LABELS)
def test_every_known_label_makes_a_pool(label):
    found = discover_settings([node({label: "batch-1"}), node({label: "batch-1"})])
    (pool,) = found.node_pools
    assert (pool.name, pool.selector) == ("batch-1", ((label, "batch-1"),))
    assert found.mode is Mode.OBSERVE
    assert read_back(found) == found


def test_the_managers_label_counts_before_the_instance_type():
    both = {"karpenter.sh/nodepool": "general", "node.kubernetes.io/instance-type": "m5.xlarge"}
    (pool,) = discover_settings([node(both)]).node_pools
    assert pool.selector == (("karpenter.sh/nodepool", "general"),)


def test_a_selector_that_would_take_another_pools_nodes_is_not_proposed():
    managed = node({"karpenter.sh/nodepool": "general", "node.kubernetes.io/instance-type": "m5.xlarge"})
    alone = node({"node.kubernetes.io/instance-type": "m5.xlarge"})
    other = node({"node.kubernetes.io/instance-type": "c5.large"})
    found = discover_settings([managed, alone, other])
    assert [pool.name for pool in found.node_pools] == ["general", "c5-large"]


def test_the_control_plane_and_nodes_without_a_size_are_left_out():
    found = discover_settings(
        [
            node({"node-role.kubernetes.io/control-plane": "", "agentpool": "masters"}),
            node({"agentpool": "empty"}, cpu="0"),
            {"metadata": {"labels": {"agentpool": "silent"}}},
            node({"agentpool": "work"}),
        ]
    )
    assert [pool.name for pool in found.node_pools] == ["work"]


def test_a_cluster_without_any_known_label_is_one_pool():
    found = discover_settings([node({}), node({})])
    (pool,) = found.node_pools
    assert (pool.name, pool.selector) == ("linux", (("kubernetes.io/os", "linux"),))
    assert (pool.min_nodes, pool.max_nodes, pool.provider) == (2, 2, "none")


@pytest.mark.parametrize(
    ("labels", "capacity_type", "provider"),
    [
        ({"eks.amazonaws.com/nodegroup": "a", "eks.amazonaws.com/capacityType": "SPOT"}, "spot", "placeholder"),
        ({"eks.amazonaws.com/nodegroup": "a", "eks.amazonaws.com/capacityType": "ON_DEMAND"}, "on-demand", "none"),
        ({"cloud.google.com/gke-nodepool": "a", "cloud.google.com/gke-spot": "true"}, "spot", "placeholder"),
        ({"cloud.google.com/gke-nodepool": "a"}, "on-demand", "none"),
        ({"agentpool": "a", "kubernetes.azure.com/scalesetpriority": "spot"}, "spot", "placeholder"),
        ({"karpenter.sh/nodepool": "a", "karpenter.sh/capacity-type": "on-demand"}, "on-demand", "placeholder"),
        ({"karpenter.sh/nodepool": "a", "karpenter.sh/capacity-type": "reserved"}, "reserved", "none"),
    ],
)
def test_how_nodes_are_paid_for_decides_what_they_are_proposed_for(labels, capacity_type, provider):
    found = discover_settings([node(labels)])
    (pool,) = found.node_pools
    assert (pool.capacity_type, pool.provider) == (CapacityType(capacity_type), provider)
    (proposed,) = found.classes
    assert (proposed.name, proposed.evictable) == (("core", False) if provider == "none" else ("burst", True))


def test_a_pool_is_as_large_as_its_smallest_node_and_slots_fill_it():
    found = discover_settings(
        [
            node({"agentpool": "a"}, cpu="8", memory="30Gi", **{"nvidia.com/gpu": "1"}),
            node({"agentpool": "a"}, cpu="4", memory="32Gi"),
        ]
    )
    (pool,) = found.node_pools
    assert pool.shape.as_text() == "cpu 4, memory 30Gi, pods 58"
    (core,) = found.classes
    assert core.slot_shape.as_text() == "cpu 1, memory 7680Mi"
    assert core.slot_shape.how_often_in(pool.shape) == 4


def test_lasting_taints_of_all_nodes_are_kept():
    lasting = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
    passing = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}
    own = {"key": "debug", "effect": "NoSchedule"}
    found = discover_settings(
        [node({"agentpool": "a"}, taints=[lasting, passing, own]), node({"agentpool": "a"}, taints=[lasting])]
    )
    assert found.node_pools[0].taints == (Taint("dedicated", "batch", "NoSchedule"),)
    assert read_back(found) == found


def test_names_that_become_alike_stay_apart():
    found = discover_settings(
        [node({"agentpool": "Pool_A"}), node({"agentpool": "pool-a"}), node({"agentpool": "pool.a"})]
    )
    assert sorted(pool.name for pool in found.node_pools) == ["pool-a", "pool-a-2", "pool-a-3"]


def test_no_nodes_give_no_pools_and_the_example_is_a_sound_file():
    assert discover_settings([]).node_pools == ()
    example = example_settings()
    assert read_back(example) == example


junk = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)
label_sets = st.dictionaries(
    st.one_of(st.sampled_from(POOL_LABELS), st.text(max_size=6)),
    st.one_of(st.sampled_from(["a", "A_b", "a.b", "é", "x" * 64, "spot"]), junk),
    max_size=3,
)
quantity_texts = st.one_of(st.sampled_from(["1", "250m", "10m", "9223372036854775807", "64Ki", "-1", "x"]), junk)
some_nodes = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.one_of(junk, st.fixed_dictionaries({"labels": st.one_of(label_sets, junk)})),
        "spec": st.one_of(junk, st.fixed_dictionaries({"taints": junk})),
        "status": st.fixed_dictionaries(
            {
                "allocatable": st.dictionaries(
                    st.sampled_from(["cpu", "memory", "pods", "nvidia.com/gpu", "/", "hugepages-2Mi"]), quantity_texts
                )
            }
        ),
    },
)


@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(some_nodes, max_size=5))
def test_whatever_a_cluster_says_the_proposal_reads_back(nodes):
    found = discover_settings(nodes)
    if found.node_pools:
        assert read_back(found) == found


def test_the_rendered_file_explains_itself():
    text = render_capacity_file(example_settings())
    assert "# observe: recommend only" in text
    assert "#   max_nodes            Most nodes that the pool may have." in text
    assert max(len(line) for line in text.splitlines()) <= 120
