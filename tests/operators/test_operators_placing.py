from __future__ import annotations

from kubernetes.client import models as k8s

from airflow_elastic.kubernetes.placement import Placement
from airflow_elastic.operators.placing import merged_affinity, merged_tolerations, place


def term(*pairs: tuple[str, str]) -> dict[str, object]:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": [value]} for key, value in pairs]}


OURS = {
    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term(("pool", "a")), term(("pool", "b"))]},
    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": term(("pool", "a"))}],
}


def pairs(affinity: k8s.V1Affinity) -> list[list[tuple[str, str]]]:
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    return [[(each.key, each.values[0]) for each in one.match_expressions] for one in required.node_selector_terms]


def weights(affinity: k8s.V1Affinity) -> list[int]:
    preferred = affinity.node_affinity.preferred_during_scheduling_ignored_during_execution
    return [each.weight for each in preferred or ()]


def test_without_a_users_affinity_ours_stands() -> None:
    for nothing in (None, {}, k8s.V1Affinity()):
        got = merged_affinity(nothing, OURS)
        assert pairs(got) == [[("pool", "a")], [("pool", "b")]]
        assert weights(got) == [100]


def test_every_term_of_the_user_is_joined_with_every_one_of_ours() -> None:
    users = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [term(("zone", "1")), term(("zone", "2"), ("arch", "arm"))]
            },
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 7, "preference": term(("disk", "ssd"))}],
        },
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "host"}]},
    }
    got = merged_affinity(users, OURS)
    assert pairs(got) == [
        [("zone", "1"), ("pool", "a")],
        [("zone", "1"), ("pool", "b")],
        [("zone", "2"), ("arch", "arm"), ("pool", "a")],
        [("zone", "2"), ("arch", "arm"), ("pool", "b")],
    ]
    assert weights(got) == [7, 100]
    assert got.pod_anti_affinity.required_during_scheduling_ignored_during_execution[0].topology_key == "host"


def test_a_users_term_that_matches_no_node_still_matches_none() -> None:
    def required(*terms: k8s.V1NodeSelectorTerm) -> k8s.V1Affinity:
        selector = k8s.V1NodeSelector(node_selector_terms=list(terms))
        return k8s.V1Affinity(
            node_affinity=k8s.V1NodeAffinity(required_during_scheduling_ignored_during_execution=selector)
        )

    empty = k8s.V1NodeSelectorTerm()
    fields = k8s.V1NodeSelectorTerm(match_fields=[k8s.V1NodeSelectorRequirement("metadata.name", "In", ["n1"])])
    assert merged_affinity(required(empty), OURS).node_affinity.required_during_scheduling_ignored_during_execution == (
        k8s.V1NodeSelector(node_selector_terms=[empty])
    )
    joined = merged_affinity(required(empty, fields), OURS)
    required_terms = joined.node_affinity.required_during_scheduling_ignored_during_execution.node_selector_terms
    assert [(each.match_fields[0].values, each.match_expressions[0].values) for each in required_terms] == [
        (["n1"], ["a"]),
        (["n1"], ["b"]),
    ]


def test_tolerations_are_added_once() -> None:
    same = k8s.V1Toleration(key="spot", operator="Exists", effect="NoSchedule")
    got = merged_tolerations([same], [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}, {"key": "x"}])
    assert got == [same, k8s.V1Toleration(key="x")]


def test_a_users_priority_class_and_word_on_eviction_stay() -> None:
    placement = Placement(OURS, [], "ours", {"class": "burst"}, {"safe-to-evict": "false", "own": "1"})
    pod = k8s.V1Pod(
        metadata=k8s.V1ObjectMeta(labels={"app": "x"}, annotations={"safe-to-evict": "true"}),
        spec=k8s.V1PodSpec(containers=[], priority_class_name="theirs"),
    )
    place(pod, placement, {"run": "r"})
    assert pod.spec.priority_class_name == "theirs"
    assert pod.metadata.labels == {"app": "x", "class": "burst"}
    assert pod.metadata.annotations == {"safe-to-evict": "true", "own": "1", "run": "r"}


def test_a_pod_without_metadata_of_its_own_is_placed_too() -> None:
    pod = k8s.V1Pod(metadata=k8s.V1ObjectMeta(), spec=k8s.V1PodSpec(containers=[]))
    place(pod, Placement(OURS, [{"key": "t"}], "ours", {"class": "burst"}), {})
    assert pod.spec.priority_class_name == "ours"
    assert pod.spec.tolerations == [k8s.V1Toleration(key="t")]
    assert pairs(pod.spec.affinity) == [[("pool", "a")], [("pool", "b")]]
