from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_elastic.errors import ConfigurationError
from airflow_elastic.model.capacity_class import CapacityClass, TaskRule
from airflow_elastic.model.labels import LABEL_CAPACITY_CLASS
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.resources import Resources
from airflow_elastic.model.settings import Mode, Settings
from airflow_elastic.operators.tagging import Tag, class_by_rules, tag_for
from airflow_elastic.planning.validate import fits_node

parse = Resources.parse


def tag(settings: Settings, capacity_class: str = "burst", **more: object) -> Tag:
    requests = more.pop("requests", parse({"cpu": "1", "memory": "1Gi"}))
    return tag_for(settings, task="d.t", capacity_class=capacity_class, requests=requests, **more)


@pytest.mark.parametrize(
    ("requests", "slots"),
    [
        ({"cpu": "1", "memory": "1Gi"}, 1),
        ({"cpu": "100m"}, 1),
        ({"cpu": "1001m"}, 2),
        ({"cpu": "500m", "memory": "3Gi"}, 3),
        ({"cpu": "4", "memory": "8Gi"}, 4),  # 8 by memory, but one node holds it and counts for 4
    ],
)
def test_slots_are_what_the_requests_take_of_the_slot_shape(settings: Settings, requests, slots: int) -> None:
    assert tag(settings, requests=parse(requests)).pool_slots == slots


def test_the_class_gives_pool_placement_and_time_to_start(settings: Settings) -> None:
    got = tag(settings, "core")
    assert (got.airflow_pool, got.capacity.capacity_class) == ("core_pool", "core")
    assert got.placement.priority_class_name == "core-first"
    assert got.placement.labels == {LABEL_CAPACITY_CLASS: "core"}
    assert got.start_timeout_seconds == 2 * 60 + 120
    assert tag(settings, "burst").start_timeout_seconds == 2 * 180 + 120
    assert tag(settings, "").capacity.capacity_class == "burst"


def test_own_node_pools_narrow_the_class(settings: Settings) -> None:
    got = tag(settings, "burst", node_pools=["fixed"])
    terms = got.placement.node_affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [term["matchExpressions"][0]["values"] for term in terms] == [["fixed"]]
    assert got.capacity.node_pools == ("fixed",)


def test_mode_observe_changes_nothing_about_a_task_but_shows_what_is_known(settings: Settings) -> None:
    got = tag(replace(settings, mode=Mode.OBSERVE), "core", requests=parse({"cpu": "9"}))
    assert not got.acts
    assert (got.airflow_pool, got.pool_slots, got.start_timeout_seconds) == ("", 0, 0)
    assert (got.placement.node_affinity, got.placement.tolerations, got.placement.priority_class_name) == ({}, [], "")
    assert "cpu 9" in got.capacity.impossible


@pytest.mark.parametrize(
    ("requests", "words"),
    [
        ({"cpu": "5"}, ["d.t", "cpu 5", "elastic: cpu 4"]),
        ({"memory": "9Gi"}, ["memory 9Gi"]),
        ({"nvidia.com/gpu": "1"}, ["nvidia.com/gpu 1"]),
    ],
)
def test_a_task_wider_than_any_node_is_impossible_and_says_why(settings: Settings, requests, words) -> None:
    why = tag(settings, requests=parse(requests)).capacity.impossible
    assert all(word in why for word in words)


def test_a_node_pool_that_may_have_no_node_offers_nothing(settings: Settings) -> None:
    none = replace(settings, node_pools=tuple(replace(pool, max_nodes=0) for pool in settings.node_pools))
    assert "max_nodes 0" in tag(none).capacity.impossible


def test_more_slots_than_the_class_can_ever_have_are_impossible(settings: Settings) -> None:
    assert tag(settings, "core", pool_slots=8).capacity.impossible == ""
    assert "8 at most" in tag(settings, "core", pool_slots=9).capacity.impossible


def test_an_unknown_class_or_node_pool_is_answered_with_the_known_ones(settings: Settings) -> None:
    with pytest.raises(ConfigurationError, match=r"d\.t .*'brust'.*core, burst"):
        tag(settings, "brust")
    with pytest.raises(ConfigurationError, match=r"elastc.*fixed, elastic"):
        tag(settings, "burst", node_pools=["elastc"])


def test_the_first_rule_that_matches_gives_the_class(settings: Settings) -> None:
    rules = (
        TaskRule("core", dag_id="billing_*", operator="KubernetesPodOperator"),
        TaskRule("burst", tag="batch*"),
        TaskRule("core", task_id="load"),
    )
    ruled = replace(settings, rules=rules)

    def found(dag_id: str, task_id: str = "t", operator: str = "KubernetesPodOperator", *tags: str) -> str:
        return class_by_rules(ruled, dag_id=dag_id, task_id=task_id, operators=(operator,), tags=tags)

    assert found("billing_eu") == "core"
    assert found("billing_eu", "t", "Other") == ""
    assert found("billing_eu", "t", "Other", "x", "batch-1") == "burst"
    assert found("other", "load") == "core"
    assert found("Billing_eu") == ""


AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "pods", "ephemeral-storage", "nvidia.com/gpu"]), st.integers(0, 40), max_size=4
).map(Resources.of)


@given(
    requests=AMOUNTS,
    slot_shape=AMOUNTS.filter(lambda shape: bool(shape.amounts)),
    shapes=st.lists(AMOUNTS, min_size=1, max_size=3),
)
def test_a_task_that_fits_a_node_always_has_slots_enough_in_its_class(requests, slot_shape, shapes) -> None:
    pools = tuple(NodePool(f"p{i}", (("p", str(i)),), shape, max_nodes=2) for i, shape in enumerate(shapes))
    owner = CapacityClass("c", tuple(pool.name for pool in pools), "pool", slot_shape)
    got = tag(Settings(pools, (owner,), Mode.MANAGE), "c", requests=requests)
    assert got.pool_slots >= 1
    fits = any(fits_node(requests, pool.shape) for pool in pools)
    assert ("more than any node" in got.capacity.impossible) is not fits
    if fits and not got.capacity.impossible:
        assert got.pool_slots <= requests.slots_of(slot_shape)
    if "slot(s)" in got.capacity.impossible:  # only where not even one slot fits on any node
        assert got.pool_slots == 1
