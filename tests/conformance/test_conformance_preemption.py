"""Priority classes and what they do to the less important."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from conformance.clusters import Cluster, until
from conformance.pods import Namespace, condition, pod, requests
from conformance.rest import Object

_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


class Priorities:
    """Priority classes of one test."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._names: list[str] = []

    def make(self, value: int, **more: object) -> str:
        name = f"p{value}-{secrets.token_hex(3)}".replace("--", "-m")
        self._cluster.rest.made(_CLASSES, {"metadata": {"name": name}, "value": value, **more})
        self._names.append(name)
        return name

    def drop(self) -> None:
        for name in self._names:
            self._cluster.rest.delete(f"{_CLASSES}/{name}")


@pytest.fixture
def priorities(cluster: Cluster) -> Iterator[Priorities]:
    made = Priorities(cluster)
    yield made
    made.drop()


def test_the_class_becomes_a_number(ns: Namespace, priorities: Priorities) -> None:
    high = priorities.make(1000, preemptionPolicy="Never")
    made = ns.create(pod("one", schedulerName="nobody", priorityClassName=high))
    assert (made["spec"]["priority"], made["spec"]["preemptionPolicy"]) == (1000, "Never")
    plain = ns.create(pod("two", schedulerName="nobody"))
    assert (plain["spec"]["priority"], plain["spec"]["preemptionPolicy"]) == (0, "PreemptLowerPriority")


def test_a_class_that_is_not_there(ns: Namespace) -> None:
    answer = ns.rest.post(ns.pods, pod("one", priorityClassName="not-there"))
    assert (answer.code, answer.reason) == (403, "Forbidden")
    assert answer.message == 'pods "one" is forbidden: no PriorityClass with name not-there was found'


def test_a_number_that_is_not_the_classs(ns: Namespace, priorities: Priorities) -> None:
    answer = ns.rest.post(ns.pods, pod("one", priorityClassName=priorities.make(10), priority=11))
    assert (answer.code, answer.reason) == (403, "Forbidden")


def test_the_value_of_a_class_cannot_change(cluster: Cluster, priorities: Priorities) -> None:
    path = f"{_CLASSES}/{priorities.make(10)}"
    assert cluster.rest.patch(path, {"value": 11}).code == 422
    assert cluster.rest.patch(path, {"description": "new"}).code == 200
    too_high = {"metadata": {"name": "much-too-high"}, "value": 1_000_000_001}
    assert cluster.rest.post(_CLASSES, too_high).code == 422
    negative = cluster.rest.get(f"{_CLASSES}/{priorities.make(-10)}").body
    assert negative["value"] == -10
    assert negative["preemptionPolicy"] == "PreemptLowerPriority"


def test_the_less_important_makes_room(cluster: Cluster, ns: Namespace, priorities: Priorities) -> None:
    node, high = cluster.node(), priorities.make(1000)
    ns.place(node, "low", container=requests(cpu="3"), terminationGracePeriodSeconds=1)
    ns.until_phase("low", "Running")
    start = ns.rest.get(ns.pods).version
    with ns.rest.watch(ns.pods, resourceVersion=start) as watch:
        ns.place(node, "high", priorityClassName=high, container=requests(cpu="3"))
        # The reason first, then the deletion: who looks only at the last version still sees why.
        marked = watch.until(lambda _, obj: bool(condition(obj, "DisruptionTarget")))
        assert marked["metadata"]["name"] == "low"
        target = condition(marked, "DisruptionTarget")
        assert (target["status"], target["reason"]) == ("True", "PreemptionByScheduler")
        assert target["message"] == "default-scheduler: preempting to accommodate a higher priority pod"
        gone = watch.until(lambda kind, _: kind == "DELETED")
        assert gone["metadata"]["name"] == "low"
        assert condition(gone, "DisruptionTarget")["reason"] == "PreemptionByScheduler"
    assert ns.until_phase("high", "Running")["spec"]["nodeName"] == node
    preempted = next(event for event in cluster.events(ns.name, "low") if event["reason"] == "Preempted")
    assert preempted["message"].startswith("Preempted by pod ")


def test_the_nominated_node_is_written_down(cluster: Cluster, ns: Namespace, priorities: Priorities) -> None:
    node, high = cluster.process_node, priorities.make(1000)
    capacity = cluster.rest.get(f"/api/v1/nodes/{node}").body["status"]["allocatable"]
    most = {"resources": {"requests": {"memory": _share(capacity["memory"], 0.6)}}}
    ns.run("low", "trap '' TERM; sleep 60 & wait; sleep 60", container=most, terminationGracePeriodSeconds=3)
    ns.until_phase("low", "Running")
    selector = {"kubernetes.io/hostname": node}
    ns.create(pod("high", seconds=600, priorityClassName=high, nodeSelector=selector, container={
        **most, "command": ["/bin/sh", "-c", "sleep 60"],
    }, terminationGracePeriodSeconds=1))  # fmt: skip
    until(lambda: ns.pod("high")["status"].get("nominatedNodeName") == node, 10, "the nomination")
    assert ns.pod("low")["metadata"]["deletionTimestamp"]
    ns.until_gone("low")
    running = ns.until_phase("high", "Running")
    assert running["spec"]["nodeName"] == node


def _share(memory: str, share: float) -> str:
    units = {"Ki": 1024, "Mi": 1024**2, "Gi": 1024**3}
    for unit, factor in units.items():
        if memory.endswith(unit):
            return str(int(int(memory.removesuffix(unit)) * factor * share))
    return str(int(int(memory) * share))


def test_no_more_victims_than_needed_and_the_least_important_first(
    cluster: Cluster, ns: Namespace, priorities: Priorities
) -> None:
    node, high = cluster.node(), priorities.make(1000)
    classes = {"a": priorities.make(10), "b": priorities.make(20), "c": priorities.make(30)}
    for name, class_name in classes.items():
        ns.place(node, name, priorityClassName=class_name, container=requests(cpu="1300m"))
        ns.until_phase(name, "Running")
    ns.place(node, "high", priorityClassName=high, container=requests(cpu="1300m"))
    ns.until_phase("high", "Running")
    assert [ns.phase(name) for name in classes] == ["", "Running", "Running"]


def test_nobody_is_ended_in_vain(cluster: Cluster, ns: Namespace, priorities: Priorities) -> None:
    node, high = cluster.node(), priorities.make(1000)
    ns.place(node, "low", container=requests(cpu="3"))
    ns.until_phase("low", "Running")
    ns.place(node, "too-big", priorityClassName=high, container=requests(cpu="5"))
    ns.until_condition("too-big", "PodScheduled", "False")
    assert ns.phase("low") == "Running"
    assert not condition(ns.pod("low"), "DisruptionTarget")


def test_equals_do_not_preempt_each_other(cluster: Cluster, ns: Namespace, priorities: Priorities) -> None:
    node, same = cluster.node(), priorities.make(1000)
    ns.place(node, "first", priorityClassName=same, container=requests(cpu="3"))
    ns.until_phase("first", "Running")
    ns.place(node, "second", priorityClassName=same, container=requests(cpu="3"))
    ns.until_condition("second", "PodScheduled", "False")
    assert ns.phase("first") == "Running"


def test_a_class_may_renounce(cluster: Cluster, ns: Namespace, priorities: Priorities) -> None:
    node, polite = cluster.node(), priorities.make(1000, preemptionPolicy="Never")
    ns.place(node, "low", container=requests(cpu="3"))
    ns.until_phase("low", "Running")
    ns.place(node, "polite", priorityClassName=polite, container=requests(cpu="3"))
    message = ns.until_condition("polite", "PodScheduled", "False")["message"]
    assert "preemption: " in message
    assert ns.phase("low") == "Running"


def test_the_more_important_goes_first(cluster: Cluster, ns: Namespace, priorities: Priorities) -> None:
    node = cluster.node()
    low, high = priorities.make(10), priorities.make(20)
    ns.place(node, "now", priorityClassName=priorities.make(30), container=requests(cpu="4"))
    ns.until_phase("now", "Running")
    ns.place(node, "low", priorityClassName=low, container=requests(cpu="4"))
    ns.until_condition("low", "PodScheduled", "False")
    ns.place(node, "high", priorityClassName=high, container=requests(cpu="4"))
    ns.until_condition("high", "PodScheduled", "False")
    ns.rest.delete(f"{ns.pods}/now", gracePeriodSeconds=0)
    ns.until_phase("high", "Running")
    assert ns.phase("low") == "Pending"


def test_placeholders_with_negative_priority_are_preempted_by_anybody(
    cluster: Cluster, ns: Namespace, priorities: Priorities
) -> None:
    node = cluster.node()
    ns.place(
        node, "placeholder", priorityClassName=priorities.make(-10), container=requests(cpu="3500m"),
        terminationGracePeriodSeconds=0,
    )  # fmt: skip
    ns.until_phase("placeholder", "Running")
    ns.place(node, "work", container=requests(cpu="3"))
    ns.until_phase("work", "Running")
    ns.until_gone("placeholder")


def test_victims_with_a_budget_are_spared_while_others_do(
    cluster: Cluster, ns: Namespace, priorities: Priorities
) -> None:
    node, high = cluster.node(), priorities.make(1000)
    body: Object = {
        "metadata": {"name": "guard"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}},
    }
    ns.rest.made(f"/apis/policy/v1/namespaces/{ns.name}/poddisruptionbudgets", body)
    ns.place(node, "guarded", labels={"app": "guarded"}, container=requests(cpu="1500m"))
    ns.place(node, "free", container=requests(cpu="1500m"))
    for name in ("guarded", "free"):
        ns.until_phase(name, "Running")
    budget = f"/apis/policy/v1/namespaces/{ns.name}/poddisruptionbudgets/guard"
    until(lambda: ns.rest.get(budget).body["status"].get("currentHealthy") == 1, 20, "the budget's status")
    ns.place(node, "high", priorityClassName=high, container=requests(cpu="1500m"))
    ns.until_phase("high", "Running")
    assert ns.phase("guarded") == "Running"
    assert ns.phase("free") == ""
