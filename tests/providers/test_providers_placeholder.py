from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_elastic.errors import TemporaryError
from airflow_elastic.model.node_pool import NodePool, Taint
from airflow_elastic.model.resources import Resources
from airflow_elastic.model.snapshot import Node, Pod, PodPhase
from airflow_elastic.providers.base import PoolFacts, ProviderRefused, Target, WarmShare
from airflow_elastic.providers.placeholder import PlaceholderProvider
from airflow_elastic.providers.placeholder_pod import (
    PRIORITY_CLASS,
    placeholder_name,
    placeholder_pod,
    placeholder_size,
)

SHAPE = Resources.parse({"cpu": "4", "memory": "8Gi", "ephemeral-storage": "50Gi", "pods": 20})
POOL = NodePool("p", (("pool", "p"),), SHAPE, 0, 5, taints=(Taint("spot", "true"), Taint("any", effect="")))
NOW = 1000.0
SHARE = WarmShare("aaaa", 2, NOW + 60, "etl", "run 1")


class Api:
    """Answers by (method, last part of the path); 200 and an empty object where nothing is set."""

    def __init__(self, **answers):
        self.answers = answers
        self.calls = []

    def call(self, method, path, body=None, query=None, content_type="application/json"):
        self.calls.append((method, path, body))
        answer = self.answers.get(f"{method}_{path.rsplit('/', 1)[-1].replace('-', '_')}", (200, {}))
        return answer.pop(0) if isinstance(answer, list) else answer

    def names(self, method):
        return [path.rsplit("/", 1)[-1] if method == "DELETE" else body["metadata"]["name"]
                for used, path, body in self.calls if used == method and "pods" in path]  # fmt: skip


def pod(index=0, owner="aaaa", node="", **more):
    given = {"created_at": NOW - 1, "placeholder_of": owner, "node_pools": ("p",), **more}
    return Pod(placeholder_name(owner, index), "d", Resources(), PodPhase.PENDING, node, **given)


def node(name, usable=True, foreign="", **more):
    taken = Resources.parse({"cpu": foreign}) if foreign else Resources()
    return Node(name, "p", SHAPE, usable, foreign=taken, **more)


def facts(placeholders=(), nodes=(), task_pods=(), now=NOW):
    return PoolFacts(now, POOL, tuple(nodes), tuple(placeholders), tuple(task_pods))


def provider(api):
    return PlaceholderProvider(POOL, api, "d")


def task(node):
    return Pod("t", "d", Resources(), PodPhase.RUNNING, node, capacity_class="burst")


def test_one_fits_on_an_empty_node_and_only_one():
    unseen = Resources.parse(placeholder_size(facts()))
    seen = Resources.parse(placeholder_size(facts(nodes=[node("a", foreign="300m"), node("b", foreign="3500m")])))
    crowded = Resources.parse(placeholder_size(facts(nodes=[node("a", foreign="3500m")])))
    assert seen.get("cpu") == 3700
    for size in (unseen, seen, crowded):
        assert size.how_often_in(SHAPE) == 1
        assert size.get("ephemeral-storage") == 0
    booting = facts(nodes=[node("a", usable=False, foreign="100m", is_booting=True)])
    assert placeholder_size(booting) == placeholder_size(facts())


def test_a_node_that_is_smaller_than_promised_still_holds_one():
    small = replace(node("a"), allocatable=Resources.parse({"cpu": "3800m", "memory": "7Gi"}))
    assert Resources.parse(placeholder_size(facts(nodes=[small]))).fits_in(small.allocatable)


def test_the_pod_gives_way_holds_its_node_and_says_whose_it_is():
    made = placeholder_pod("x", POOL, "d", SHARE, {"cpu": "1"})
    assert made["spec"]["terminationGracePeriodSeconds"] == 0
    assert made["spec"]["nodeSelector"] == {"pool": "p"}
    assert made["spec"]["tolerations"] == [
        {"key": "spot", "operator": "Equal", "value": "true", "effect": "NoSchedule"},
        {"key": "any", "operator": "Exists"},
    ]
    assert made["metadata"]["annotations"]["airflow-elastic.io/run-id"] == "run 1"
    assert made["metadata"]["annotations"]["airflow-elastic.io/expires-at"] == "1060.000"
    assert PRIORITY_CLASS["value"] == -10
    assert PRIORITY_CLASS["preemptionPolicy"] == "Never"


def test_names_are_the_same_for_whoever_asks_and_taken_ones_are_adopted():
    api = Api(POST_pods=[(409, {}), (201, {})])
    outcome = provider(api).apply(facts(), Target(2, (SHARE,)))
    assert api.names("POST") == ["elastic-placeholder-aaaa-0", "elastic-placeholder-aaaa-1"]
    assert len(outcome.done) == 1  # the other one was there


def test_those_beside_tasks_go_first_then_released_then_pending_ones():
    alive = [pod(0, node="idle"), pod(1, node="busy"), pod(2), pod(3, node="going")]
    for keep, gone in ((3, [1]), (2, [1, 3]), (1, [1, 3, 2])):
        api = Api()
        target = Target(keep, (replace(SHARE, nodes=keep),), release=("going",))
        provider(api).apply(facts(alive, task_pods=[task("busy")]), target)
        assert sorted(api.names("DELETE")) == sorted(placeholder_name("aaaa", index) for index in gone)
        assert not api.names("POST")


def test_tasks_leave_less_room_below_the_maximum():
    api = Api()
    provider(api).apply(facts(task_pods=[task(f"n{i}") for i in range(4)]), Target(6, (SHARE,)))
    assert len(api.names("POST")) == 1


def test_a_warm_node_is_handed_over_to_its_new_owner():
    api = Api()
    outcome = provider(api).apply(facts([pod(0, "bbbb", "n1")]), Target(1, (replace(SHARE, nodes=1),)))
    ((method, _, body),) = [call for call in api.calls if call[0] in ("PATCH", "POST", "DELETE")]
    assert method == "PATCH"
    assert body["metadata"]["labels"] == {"airflow-elastic.io/reservation": "aaaa"}
    assert "etl run 1" in outcome.done[0]


def test_nothing_is_made_for_an_owner_whose_time_is_over():
    api = Api()
    provider(api).apply(facts(), Target(1, (replace(SHARE, expires_at=NOW),)))
    assert not api.names("POST")


def test_the_priority_class_is_made_once():
    api = Api(GET_airflow_elastic_placeholder=(404, {}), POST_priorityclasses=(201, {}))
    one = provider(api)
    one.apply(facts(), Target(1, (replace(SHARE, nodes=1),)))
    one.apply(facts(), Target(1, (replace(SHARE, nodes=1),)))
    assert len([path for method, path, _ in api.calls if method == "POST" and path.endswith("priorityclasses")]) == 1


def test_a_vanished_priority_class_is_made_again():
    message = {"message": "no PriorityClass with name airflow-elastic-placeholder was found"}
    api = Api(POST_pods=[(403, message), (201, {})])
    one = provider(api)
    with pytest.raises(TemporaryError):
        one.apply(facts(), Target(1, (replace(SHARE, nodes=1),)))
    one.apply(facts(), Target(1, (replace(SHARE, nodes=1),)))
    assert len([path for method, path, _ in api.calls if method == "GET"]) == 2


def test_what_is_forbidden_names_the_permission():
    api = Api(POST_pods=(403, {"message": "pods is forbidden"}))
    with pytest.raises(ProviderRefused, match=r"pods is forbidden.*create and delete on pods"):
        provider(api).apply(facts(), Target(1, (SHARE,)))


def test_a_pending_one_is_a_coming_node_unless_one_boots_or_stands_free():
    pending = [pod(0, created_at=NOW - 5), pod(1)]
    state = provider(Api()).state(facts(pending))
    assert (state.coming_nodes, state.coming_since, state.desired_nodes) == (2, NOW - 5, None)
    booting = node("b", usable=False, is_booting=True)
    assert provider(Api()).state(facts(pending, [booting])).coming_nodes == 1
    assert provider(Api()).state(facts(pending, [booting, node("free")])).coming_nodes == 0
    busy = facts(pending, [booting, node("busy")], [task("busy")])
    assert provider(Api()).state(busy).coming_nodes == 1
    assert provider(Api()).state(facts([replace(pod(), is_deleting=True)])).coming_nodes == 0


def test_the_autoscalers_own_word_is_the_failure():
    events = [
        {"reason": "TriggeredScaleUp", "lastTimestamp": "2026-01-01T00:00:00Z"},
        {"reason": "NotTriggerScaleUp", "lastTimestamp": "2026-01-01T00:00:09Z", "message": "max node group size"},
        {"reason": "Scheduled", "lastTimestamp": "2026-01-01T00:01:00Z"},
    ]
    waiting = facts([pod(created_at=NOW - 31)])
    assert "max node group size" in provider(Api(GET_events=(200, {"items": events}))).state(waiting).failure
    assert provider(Api(GET_events=(200, {"items": events[:1]}))).state(waiting).failure == ""
    young = Api(GET_events=(200, {"items": events}))
    assert provider(young).state(facts([pod(created_at=NOW - 5)])).failure == ""
    assert not young.calls


def test_nodes_that_are_long_overdue_are_a_failure_too():
    failure = provider(Api(GET_events=(403, {}))).state(facts([pod(created_at=NOW - 601)])).failure
    assert "601 s" in failure


def test_a_sweep_takes_what_has_expired_ended_or_lost_its_node_at_once():
    left = [
        pod(0, expires_at=NOW),
        replace(pod(1), phase=PodPhase.FAILED),
        pod(2, node="lost"),
        replace(pod(3, expires_at=NOW), is_deleting=True),
        pod(4),
    ]
    api = Api()
    provider(api).sweep(facts(left, [node("lost", usable=False, is_lost=True)]), {"aaaa"})
    assert api.names("DELETE") == [placeholder_name("aaaa", index) for index in (0, 1, 2)]


def test_an_orphan_may_be_handed_over_for_a_moment_before_it_is_swept():
    api = Api(DELETE_elastic_placeholder_aaaa_0=(404, {}))
    one = provider(api)
    assert not one.sweep(facts([pod()]), set()).done
    assert not api.calls
    one.sweep(facts([pod()], now=NOW + 1), {"aaaa"})
    one.sweep(facts([pod()], now=NOW + 4), set())
    assert not api.calls
    one.sweep(facts([pod()], now=NOW + 7), set())
    assert api.names("DELETE") == [placeholder_name("aaaa", 0)]
