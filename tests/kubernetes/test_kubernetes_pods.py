from __future__ import annotations

from airflow_elastic.kubernetes.placement import placement_for
from airflow_elastic.kubernetes.pods import admitted_pools, class_by_rules, map_pod
from airflow_elastic.model.capacity_class import CapacityClass, TaskRule
from airflow_elastic.model.carrier import TaskCapacity
from airflow_elastic.model.demand import TaskKey
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.resources import Resources
from airflow_elastic.model.settings import Settings
from airflow_elastic.model.snapshot import PodPhase

SHAPE = Resources.of(cpu=4000)
POOLS = tuple(NodePool(name, (("pool", name),), SHAPE) for name in ("fixed", "spot"))
BURST = CapacityClass("burst", ("spot", "fixed"), "burst", Resources.of(cpu=1000), evictable=True)
SETTINGS = Settings(node_pools=POOLS, classes=(BURST,), rules=(TaskRule("burst", dag_id="etl_*"),))


def pod(labels=None, annotations=None, spec=None, status=None, **metadata):
    return {
        "metadata": {
            "name": "p", "namespace": "n", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": labels or {}, "annotations": annotations or {}, **metadata,
        },
        "spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}], **(spec or {})},
        "status": status or {"phase": "Pending"},
    }  # fmt: skip


def test_our_task_pod_names_its_exact_owner():
    prefix = "airflow-elastic.io/"
    annotations = {
        f"{prefix}dag-id": "etl", f"{prefix}run-id": "manual__2026-01-01T00:00:00+00:00",
        f"{prefix}task-id": "group.load", f"{prefix}map-index": "3",
    }  # fmt: skip
    facts = map_pod(pod({f"{prefix}capacity-class": "burst", "dag_id": "cut"}, annotations))
    assert facts.is_ours
    assert facts.pod.owner == TaskKey("etl", "manual__2026-01-01T00:00:00+00:00", "group.load", 3)
    assert facts.pod.requests == Resources.parse({"cpu": "1", "pods": 1})


def test_a_plain_operators_pod_is_ours_by_rule_only():
    labels = {"dag_id": "etl_a", "task_id": "t", "run_id": "r", "kubernetes_pod_operator": "True", "map_index": "x"}
    facts = map_pod(pod(labels))
    assert not facts.is_ours
    assert facts.kpo_labels == ("etl_a", "t")
    assert facts.pod.owner == TaskKey("etl_a", "r", "t", -1)
    assert class_by_rules("etl_a", "t", SETTINGS) == "burst"
    assert class_by_rules("other", "t", SETTINGS) == ""
    tagged = Settings(rules=(TaskRule("burst", tag="nightly"), TaskRule("burst", operator="Bash*")))
    assert class_by_rules("etl_a", "t", tagged) == ""


def test_a_placeholder_names_its_reservation_and_end():
    labels = {"airflow-elastic.io/placeholder": "true", "airflow-elastic.io/reservation": "abc"}
    facts = map_pod(pod(labels, {"airflow-elastic.io/expires-at": "1767225600.5", "airflow-elastic.io/dag-id": "etl"}))
    assert facts.is_ours
    assert (facts.pod.placeholder_of, facts.pod.expires_at, facts.pod.owner) == ("abc", 1767225600.5, None)
    hostile = map_pod(pod({"airflow-elastic.io/placeholder": "true"}, {"airflow-elastic.io/expires-at": "nan"}))
    assert (hostile.pod.placeholder_of, hostile.pod.expires_at) == ("unknown", None)


def test_waiting_since_the_scheduler_found_no_node():
    condition = {"type": "PodScheduled", "status": "False", "lastTransitionTime": "2026-01-01T00:00:05Z"}
    waiting = map_pod(pod(status={"phase": "Pending", "conditions": [condition]}))
    assert waiting.pod.unschedulable_since == 1767225605.0
    bound = map_pod(pod(spec={"nodeName": "n1"}, status={"phase": "Pending", "conditions": [condition]}))
    assert bound.pod.unschedulable_since is None


def test_a_pod_that_succeeded_tells_how_long_it_ran():
    terminated = {"startedAt": "2026-01-01T00:00:10Z", "finishedAt": "2026-01-01T00:01:10Z", "exitCode": 0}
    status = {"phase": "Succeeded", "containerStatuses": [{"name": "base", "state": {"terminated": terminated}}]}
    assert map_pod(pod(status=status)).ran == (1767225610.0, 1767225670.0)
    assert map_pod(pod(status={**status, "phase": "Failed"})).ran is None
    assert map_pod(pod(status={"phase": "Strange"})).pod.phase is PodPhase.UNKNOWN


def test_daemons_go_with_their_node():
    assert map_pod(pod(ownerReferences=[{"kind": "DaemonSet"}])).is_daemon
    assert map_pod(pod(annotations={"kubernetes.io/config.mirror": "x"})).is_daemon
    assert not map_pod(pod(ownerReferences=[{"kind": "ReplicaSet"}])).is_daemon


def test_the_pools_that_a_placement_admits_are_read_back():
    for pools in (("spot", "fixed"), ("fixed",)):
        affinity = {"nodeAffinity": placement_for(SETTINGS, TaskCapacity("burst", node_pools=pools)).node_affinity}
        terms = map_pod(pod(spec={"affinity": affinity})).terms
        assert set(admitted_pools(terms, SETTINGS)) == set(pools)
    assert admitted_pools(map_pod(pod()).terms, SETTINGS) == ()
    assert admitted_pools(map_pod(pod(spec={"nodeSelector": {"pool": "spot"}})).terms, SETTINGS) == ("spot",)
    assert admitted_pools(map_pod(pod(spec={"nodeSelector": {"pool": "web"}})).terms, SETTINGS) == ()
