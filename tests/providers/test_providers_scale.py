from __future__ import annotations

import pytest

from airflow_elastic.errors import ConfigurationError, TemporaryError
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.resources import Resources
from airflow_elastic.model.snapshot import Node
from airflow_elastic.providers import make_provider
from airflow_elastic.providers.base import PoolFacts, ProviderRefused, Target
from airflow_elastic.providers.none import NoProvider
from airflow_elastic.providers.scale import ScaleProvider

SHAPE = Resources.parse({"cpu": "4"})
NOW = 1000.0


def pool(**options):
    given = {"group": "g", "version": "v1", "plural": "sets", "name": "x", **options}
    return NodePool("p", (("pool", "p"),), SHAPE, 1, 9, provider="scale", provider_options=tuple(given.items()))


class Api:
    """One scaled object and some nodes, in memory."""

    def __init__(self, replicas=2):
        self.replicas = replicas
        self.version = 1
        self.nodes = {}
        self.pods = []
        self.conditions = []
        self.conflicts = 0
        self.status = 200
        self.writes = []

    def call(self, method, path, body=None, query=None, content_type="application/json"):
        if self.status != 200:
            return self.status, {"message": "the server says no"}
        if path == "/api/v1/pods":
            return 200, {"items": self.pods}
        if path.startswith("/api/v1/nodes/"):
            return self._node(method, path.rsplit("/", 1)[-1], body)
        if method == "PATCH":
            if self.conflicts:
                self.conflicts -= 1
                self.version += 1
                return 409, {}
            assert body["metadata"]["resourceVersion"] == str(self.version)
            self.replicas = body["spec"]["replicas"]
            self.writes.append(self.replicas)
        metadata = {"resourceVersion": str(self.version)}
        spec = {"replicas": self.replicas}
        return 200, {"metadata": metadata, "spec": spec, "status": {"conditions": self.conditions}}

    def _node(self, method, name, body):
        if name not in self.nodes:
            return 404, {}
        raw = self.nodes[name]
        if method == "PATCH":
            raw["metadata"]["annotations"].update(body["metadata"]["annotations"])
            raw["metadata"]["annotations"] = {k: v for k, v in raw["metadata"]["annotations"].items() if v is not None}
            raw["spec"]["unschedulable"] = body["spec"]["unschedulable"]
        return 200, raw

    def add_node(self, name, *, cordoned=False, mark="", taint=""):
        annotations = {"airflow-elastic.io/release": mark} if mark else {}
        taints = [{"key": taint}] if taint else []
        self.nodes[name] = {
            "metadata": {"annotations": annotations}, "spec": {"unschedulable": cordoned or None, "taints": taints}
        }  # fmt: skip
        return self.nodes[name]


def node(name, usable=True, **more):
    return Node(name, "p", SHAPE, usable, **more)


def facts(*nodes, now=NOW):
    return PoolFacts(now, pool(), nodes)


def provider(api):
    return ScaleProvider(pool(), api)


def test_the_object_is_found_by_its_options():
    assert ScaleProvider(pool(), Api())._path == "/apis/g/v1/sets/x"
    assert ScaleProvider(pool(namespace="n"), Api())._path == "/apis/g/v1/namespaces/n/sets/x"
    assert ScaleProvider(pool(group="", namespace="n"), Api())._path == "/api/v1/namespaces/n/sets/x"
    with pytest.raises(ConfigurationError, match=r"'p'.*plural, name"):
        ScaleProvider(pool(plural="", name=""), Api())


def test_what_the_number_exceeds_the_standing_nodes_by_is_coming():
    api = Api(4)
    lost = node("lost", False, is_lost=True)
    going = node("going", False, is_releasing=True)
    booting = node("new", False, is_booting=True)
    state = provider(api).state(facts(node("a"), node("cordoned", False), booting, lost, going))
    assert (state.desired_nodes, state.coming_nodes, state.coming_since) == (4, 1, NOW)
    assert provider(api).state(facts(*(node(str(i)) for i in range(5)))).coming_nodes == 0


def test_insufficient_capacity_is_the_failure_while_nodes_are_missing():
    api = Api(2)
    api.conditions = [{"type": "InsufficientCapacity", "status": "True", "reason": "StockOut", "message": "none left"}]
    assert provider(api).state(facts()).failure == "StockOut: none left"
    assert provider(api).state(facts(node("a"), node("b"))).failure == ""
    api.conditions[0]["status"] = "False"
    assert provider(api).state(facts()).failure == ""


def test_the_number_never_falls_below_what_stands_and_was_not_chosen():
    api = Api(4)
    api.add_node("a")
    provider(api).apply(
        facts(node("a"), node("b"), node("c"), node("d", False, is_booting=True)), Target(0, release=("a",))
    )
    assert api.replicas == 2


def test_a_conflict_is_read_again_and_tried_again():
    api = Api(1)
    api.conflicts = 2
    provider(api).apply(facts(), Target(3))
    assert api.replicas == 3
    api.conflicts = 9
    with pytest.raises(TemporaryError, match="changes too fast"):
        provider(api).apply(facts(), Target(5))


def test_a_change_by_somebody_else_is_said_once_and_taken_as_it_is():
    api = Api(2)
    one = provider(api)
    one.apply(facts(), Target(3))
    api.replicas = 5
    state = one.state(facts())
    assert (state.desired_nodes, state.failure) == (5, "")
    (note,) = one.sweep(facts(), ()).done
    assert "from 3 to 5" in note
    one.state(facts())
    assert not one.sweep(facts(), ()).done


def test_a_fight_is_left_after_three_rounds_and_taken_up_again_later():
    api = Api(2)
    one = provider(api)
    for _ in range(3):
        one.apply(facts(), Target(3))
        api.replicas = 7
        one.state(facts())
    api.writes.clear()
    assert "only one controller" in one.apply(facts(), Target(3)).refused[0]
    state = one.state(facts())
    assert "3 times" in state.failure
    assert state.failed_until == NOW + 600
    assert not api.writes
    one.apply(facts(now=NOW + 601), Target(3))
    assert api.writes == [3]


def test_a_released_node_is_marked_and_cordoned_before_the_number_falls():
    api = Api(2)
    raw = api.add_node("a")
    outcome = provider(api).apply(facts(node("a"), node("b")), Target(1, release=("a",)))
    assert raw["spec"]["unschedulable"] is True
    assert raw["metadata"]["annotations"] == {
        "airflow-elastic.io/release": "1000.000", "airflow-elastic.io/cordoned": "true"
    }  # fmt: skip
    assert api.replicas == 1
    assert "a go first" in outcome.done[0]


def test_daemons_ended_pods_and_placeholders_hold_up_no_release():
    api = Api(2)
    api.add_node("a")
    api.pods = [
        {"metadata": {"ownerReferences": [{"kind": "DaemonSet"}]}, "status": {"phase": "Running"}},
        {"metadata": {}, "status": {"phase": "Succeeded"}},
        {"metadata": {"labels": {"airflow-elastic.io/placeholder": "true"}}, "status": {"phase": "Running"}},
    ]
    assert not provider(api).apply(facts(node("a"), node("b")), Target(1, release=("a",))).refused


def test_the_cordon_of_an_administrator_stays():
    api = Api(2)
    raw = api.add_node("a", cordoned=True)
    api.pods = [{"metadata": {"name": "web", "namespace": "d"}, "status": {"phase": "Running"}}]
    outcome = provider(api).apply(facts(node("a"), node("b")), Target(1, release=("a",)))
    assert "d/web" in outcome.refused[0]
    assert raw["spec"]["unschedulable"] is True
    assert raw["metadata"]["annotations"] == {}
    assert api.replicas == 2


def test_a_release_under_way_is_left_alone_and_a_stale_one_undone():
    api = Api(2)
    marked = {"is_releasing": True, "usable": False}
    api.add_node("old", cordoned=True, mark="900")
    api.add_node("fresh", cordoned=True, mark="999")
    api.add_node("gone", cordoned=True, mark="900", taint="ToBeDeletedByClusterAutoscaler")
    one = provider(api)
    both = facts(node("old", **marked), node("fresh", **marked), node("gone", **marked), node("b"))
    # 2 are asked for, and "old" and "b" stand: nothing will take "old".
    assert "old" in one.sweep(both, ()).done[0]
    assert api.nodes["fresh"]["metadata"]["annotations"]
    assert api.nodes["gone"]["metadata"]["annotations"]

    api.add_node("old", cordoned=True, mark="900")
    api.replicas = 1  # the number was lowered: its mechanism is at it
    assert not provider(api).sweep(both, ()).done


@pytest.mark.parametrize("mark", ["5000", "nan", "yesterday"])
def test_a_mark_that_no_clock_of_today_wrote_is_stale(mark):
    api = Api(2)
    api.add_node("odd", cordoned=True, mark=mark)
    one = provider(api)
    assert "odd" in one.sweep(facts(node("odd", is_releasing=True, usable=False), node("b")), ()).done[0]
    assert api.nodes["odd"]["metadata"]["annotations"].get("airflow-elastic.io/release") is None


@pytest.mark.parametrize(("status", "step"), [(403, "allow"), (404, "provider_options"), (422, "min_nodes")])
def test_refusals_say_what_to_do(status, step):
    api = Api()
    api.status = status
    with pytest.raises(ProviderRefused, match=f"node pool p.*the server says no.*{step}"):
        provider(api).state(facts())


def test_providers_are_made_by_name():
    assert isinstance(make_provider(pool(), Api(), "d"), ScaleProvider)
    fixed = NodePool("f", (("pool", "f"),), SHAPE, provider="none")
    nothing = make_provider(fixed, Api(), "d")
    assert isinstance(nothing, NoProvider)
    assert "provider: none" in nothing.apply(PoolFacts(NOW, fixed), Target(2)).refused[0]
    assert nothing.apply(PoolFacts(NOW, fixed), Target(0)).refused == ()
    with pytest.raises(ConfigurationError, match=r"'wishes'.*placeholder, scale, none"):
        make_provider(NodePool("f", (), SHAPE, provider="wishes"), Api(), "d")
