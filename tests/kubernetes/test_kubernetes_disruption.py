# ruff: noqa: E501 -- a table is read by its rows
"""Why a pod died: one table, a row for each way that Kubernetes and the clouds have."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_elastic.kubernetes.disruption import Cause, Policy, cause_of, refusal_of, told_to_stop_at
from airflow_elastic.kubernetes.notices import has_spot_notice, is_unreachable

Object = dict[str, Any]
T0, T1, T2 = "2026-11-30T10:00:00Z", "2026-11-30T10:00:20Z", "2026-11-30T10:00:30Z"


def pod(phase: str = "Running", *, node: str = "n1", deleted: str = "", grace: int = 0, **status: Any) -> Object:
    metadata: Object = {"name": "p"}
    if deleted:
        metadata |= {"deletionTimestamp": deleted, "deletionGracePeriodSeconds": grace}
    return {"metadata": metadata, "spec": {"nodeName": node}, "status": {"phase": phase, **status}}


def ended(code: int, at: str | None = T1, reason: str = "", name: str = "base", message: str = "") -> Object:
    state = {"exitCode": code, "reason": reason or ("Completed" if code == 0 else "Error"), "message": message}
    return {"name": name, "state": {"terminated": {**state, **({"finishedAt": at} if at else {})}}}


def running(name: str = "base") -> Object:
    return {"name": name, "state": {"running": {"startedAt": T0}}}


def waiting(reason: str, message: str = "") -> Object:
    return {"name": "base", "state": {"waiting": {"reason": reason, "message": message}}}


def target(reason: str, at: str = T1, status: str = "True") -> list[Object]:
    condition = {"type": "DisruptionTarget", "status": status, "reason": reason, "lastTransitionTime": at}
    return [{"type": "Ready", "status": "False"}, {**condition, "message": f"because of {reason}"}]


def node(*taints: str, ready: str = "True", condition: str = "", **labels: str) -> Object:
    conditions = [{"type": "Ready", "status": ready}]
    if condition:
        conditions.append({"type": condition, "status": "True"})
    return {
        "metadata": {
            "name": "n1",
            "labels": {key.replace("__", "/").replace("_", "-"): v for key, v in labels.items()},
        },
        "spec": {"taints": [{"key": key, "effect": "NoExecute"} for key in taints]},
        "status": {"conditions": conditions},
    }


def event(reason: str) -> Object:
    return {"reason": reason, "message": f"{reason} happened"}


SPOT: Object = {"karpenter.sh__capacity_type": "spot"}

TABLE: list[tuple[str, Object | None, Object, Cause | None]] = [
    # alive, or done
    ("pending", pod("Pending", node=""), {}, None),
    ("running", pod(containerStatuses=[running()]), {}, None),
    ("succeeded", pod("Succeeded", containerStatuses=[ended(0)]), {}, None),
    ("succeeded without statuses", pod("Succeeded"), {}, None),
    ("done, the XCom sidecar waits", pod(containerStatuses=[ended(0), running("airflow-xcom-sidecar")]), {}, None),
    ("done, the XCom sidecar was killed", pod("Failed", containerStatuses=[ended(0), ended(137, name="airflow-xcom-sidecar")]), {}, None),
    ("done, then its node went", pod("Failed", conditions=target("DeletionByPodGC", T2), containerStatuses=[ended(0, T1)]), {}, None),
    ("done, then deleted", pod("Succeeded", deleted=T2, containerStatuses=[ended(0, T1)]), {}, None),
    ("disruption called off", pod(conditions=target("PreemptionByScheduler", status="False")), {}, None),
    ("on a node that is not ready", pod(containerStatuses=[running()]), {"node": node(ready="Unknown")}, None),
    # the scheduler, drains, taints
    ("preempted", pod(deleted=T2, grace=30, conditions=target("PreemptionByScheduler")), {}, Cause.PREEMPTED),
    ("preempted on a node with a notice", pod(conditions=target("PreemptionByScheduler")), {"node": node("aws-node-termination-handler/spot-itn")}, Cause.PREEMPTED),
    ("preempted, exit code of SIGTERM", pod("Failed", conditions=target("PreemptionByScheduler"), containerStatuses=[ended(143, T2)]), {}, Cause.PREEMPTED),
    ("preempted, and SIGTERM handled with exit code 0", pod("Succeeded", conditions=target("PreemptionByScheduler"), containerStatuses=[ended(0, T2)]), {}, Cause.PREEMPTED),
    ("the same within one second", pod("Succeeded", conditions=target("PreemptionByScheduler", T1), containerStatuses=[ended(0, T1)]), {}, Cause.PREEMPTED),
    ("an end without a time", pod("Succeeded", conditions=target("PreemptionByScheduler", T1), containerStatuses=[ended(0, None)]), {}, Cause.PREEMPTED),
    ("out of memory while it was told to stop", pod("Failed", conditions=target("PreemptionByScheduler"), containerStatuses=[ended(137, T2, "OOMKilled")]), {}, Cause.PREEMPTED),
    ("preempted and gone", None, {"events": [event("Scheduled"), event("Preempted")]}, Cause.PREEMPTED),
    ("evicted", pod(deleted=T2, grace=10, conditions=target("EvictionByEvictionAPI")), {}, Cause.EVICTED),
    ("evicted from a node that Karpenter gives up", pod(conditions=target("EvictionByEvictionAPI")), {"node": node("karpenter.sh/disrupted")}, Cause.EVICTED),
    ("a disruption that is not known yet", pod(conditions=target("TerminationByTomorrow")), {}, Cause.EVICTED),
    ("taint manager", pod(deleted=T2, conditions=target("DeletionByTaintManager")), {"node": node("maintenance")}, Cause.TAINTED),
    ("taint manager, seen by the event only", None, {"events": [event("TaintManagerEviction")], "node": node("maintenance")}, Cause.TAINTED),
    # the node
    ("node pressure", pod("Failed", reason="Evicted", message="The node was low on resource: memory.", conditions=target("TerminationByKubelet")), {}, Cause.NODE_PRESSURE),
    ("node pressure without a condition", pod("Failed", reason="Evicted", message="The node had condition: [DiskPressure].", containerStatuses=[ended(137)]), {}, Cause.NODE_PRESSURE),
    ("node pressure and gone", None, {"events": [event("Evicted")]}, Cause.NODE_PRESSURE),
    ("the kubelet preempts for a critical pod", pod("Failed", reason="Preempting", conditions=target("TerminationByKubelet")), {}, Cause.PREEMPTED),
    ("node shut down", pod("Failed", reason="Terminated", message="Pod was terminated in response to imminent node shutdown.", conditions=target("TerminationByKubelet")), {}, Cause.NODE_SHUTDOWN),
    ("rejected by a node that shuts down", pod("Failed", reason="NodeShutdown", message="Pod was rejected"), {}, Cause.NODE_SHUTDOWN),
    ("garbage collected", pod("Failed", conditions=target("DeletionByPodGC")), {"node_is_gone": True}, Cause.NODE_LOST),
    ("NodeLost", pod(reason="NodeLost"), {}, Cause.NODE_LOST),
    ("phase Unknown", pod("Unknown"), {}, Cause.NODE_LOST),
    ("running on a node that does not exist", pod(containerStatuses=[running()]), {"node_is_gone": True}, Cause.NODE_LOST),
    ("tainted because unreachable", pod(deleted=T2, conditions=target("DeletionByTaintManager")), {"node": node("node.kubernetes.io/unreachable", ready="Unknown")}, Cause.NODE_LOST),
    ("gone with its node", None, {"node_is_gone": True}, Cause.NODE_LOST),
    ("node back after a reboot", pod("Failed", containerStatuses=[ended(137, reason="ContainerStatusUnknown")]), {}, Cause.NODE_LOST),
    # spot
    ("AWS node termination handler", pod(conditions=target("EvictionByEvictionAPI")), {"node": node("aws-node-termination-handler/spot-itn")}, Cause.SPOT_RECLAIMED),
    ("AWS auto-scaling group ends a spot machine", pod(conditions=target("EvictionByEvictionAPI")), {"node": node("aws-node-termination-handler/asg-lifecycle-termination", **SPOT)}, Cause.SPOT_RECLAIMED),
    ("… and one that is no spot machine", pod(conditions=target("EvictionByEvictionAPI")), {"node": node("aws-node-termination-handler/asg-lifecycle-termination")}, Cause.EVICTED),
    ("Karpenter's event", pod(conditions=target("EvictionByEvictionAPI")), {"events": [event("SpotInterrupted")]}, Cause.SPOT_RECLAIMED),
    ("Karpenter's event, all gone", None, {"events": [event("SpotInterrupted")], "node_is_gone": True}, Cause.SPOT_RECLAIMED),
    ("GKE's taint", pod(conditions=target("DeletionByTaintManager")), {"node": node("cloud.google.com/impending-node-termination")}, Cause.SPOT_RECLAIMED),
    ("GKE's graceful shutdown", pod("Failed", reason="Terminated", message="imminent node shutdown", conditions=target("TerminationByKubelet")), {"node": node(**{"cloud.google.com__gke_spot": "true"})}, Cause.SPOT_RECLAIMED),
    ("Azure's condition", pod(conditions=target("EvictionByEvictionAPI")), {"node": node(condition="PreemptScheduled")}, Cause.SPOT_RECLAIMED),
    ("Azure's taint on a spot machine", pod(conditions=target("EvictionByEvictionAPI")), {"node": node("remediator.kubernetes.azure.com/unschedulable", **{"kubernetes.azure.com__scalesetpriority": "spot"})}, Cause.SPOT_RECLAIMED),
    ("Azure's taint on another machine", pod(conditions=target("EvictionByEvictionAPI")), {"node": node("remediator.kubernetes.azure.com/unschedulable")}, Cause.EVICTED),
    # before it starts
    ("rejected: no cpu", pod("Failed", reason="OutOfcpu", message="Node didn't have enough resource: cpu"), {}, Cause.REJECTED),
    ("rejected: no memory", pod("Failed", reason="OutOfmemory"), {}, Cause.REJECTED),
    ("rejected: labels changed", pod("Failed", reason="NodeAffinity"), {}, Cause.REJECTED),
    ("rejected: no device", pod("Failed", reason="UnexpectedAdmissionError"), {}, Cause.REJECTED),
    ("no such image", pod("Pending", containerStatuses=[waiting("ErrImagePull", "manifest unknown")]), {}, Cause.IMAGE_PULL),
    ("no such image, backing off", pod("Pending", containerStatuses=[waiting("ImagePullBackOff", "Back-off pulling image x: not found")]), {}, Cause.IMAGE_PULL),
    ("registry overloaded", pod("Pending", containerStatuses=[waiting("ErrImagePull", "429 Too Many Requests")]), {}, None),
    ("registry away", pod("Pending", containerStatuses=[waiting("ImagePullBackOff", "dial tcp: i/o timeout")]), {}, None),
    ("not an image's name", pod("Pending", containerStatuses=[waiting("InvalidImageName")]), {}, Cause.BAD_IMAGE_NAME),
    ("an init container's image", pod("Pending", initContainerStatuses=[waiting("ErrImagePull", "not found")], containerStatuses=[waiting("PodInitializing")]), {}, Cause.IMAGE_PULL),
    ("creating", pod("Pending", containerStatuses=[waiting("ContainerCreating")]), {}, None),
    # its own doing
    ("exit code 1", pod("Failed", containerStatuses=[ended(1)]), {}, Cause.APPLICATION),
    ("exit code 1, a sidecar still runs", pod(containerStatuses=[ended(1), running("airflow-xcom-sidecar")]), {}, Cause.APPLICATION),
    ("killed by a signal of its own", pod("Failed", containerStatuses=[ended(137)]), {}, Cause.APPLICATION),
    ("another container fails", pod("Failed", containerStatuses=[ended(0), ended(2, name="proxy")]), {}, Cause.APPLICATION),
    ("another container has failed, base works on", pod(containerStatuses=[running(), ended(2, name="proxy")]), {}, None),
    ("an init container fails", pod("Failed", initContainerStatuses=[ended(3, name="fetch")], containerStatuses=[waiting("PodInitializing")]), {}, Cause.APPLICATION),
    ("failed before it was preempted", pod("Failed", conditions=target("PreemptionByScheduler", T2), containerStatuses=[ended(1, T1)]), {}, Cause.APPLICATION),
    ("failed before it was deleted", pod("Failed", deleted=T2, containerStatuses=[ended(1, T1)]), {}, Cause.APPLICATION),
    ("out of memory", pod("Failed", containerStatuses=[ended(137, reason="OOMKilled")]), {}, Cause.OUT_OF_MEMORY),
    ("out of memory before it was evicted", pod("Failed", conditions=target("EvictionByEvictionAPI", T2), containerStatuses=[ended(137, T1, "OOMKilled")]), {}, Cause.OUT_OF_MEMORY),
    ("no such command", pod("Failed", containerStatuses=[ended(128, reason="StartError")]), {}, Cause.CANNOT_START),
    ("too much local storage", pod("Failed", reason="Evicted", message="Pod ephemeral local storage usage exceeds the total limit of containers 1Gi."), {}, Cause.STORAGE_LIMIT),
    ("an emptyDir too large", pod("Failed", reason="Evicted", message='Usage of EmptyDir volume "x" exceeds the limit "1Gi".', containerStatuses=[ended(137)]), {}, Cause.STORAGE_LIMIT),
    ("its deadline", pod("Failed", reason="DeadlineExceeded"), {}, Cause.DEADLINE),
    ("its deadline, with containers", pod("Failed", reason="DeadlineExceeded", containerStatuses=[ended(143)]), {}, Cause.DEADLINE),
    # somebody
    ("deleted by hand", pod(deleted=T2, grace=10), {}, Cause.DELETED),
    ("deleted by hand, exit code of SIGTERM", pod("Failed", deleted=T2, grace=10, containerStatuses=[ended(143, T2)]), {}, Cause.DELETED),
    ("deleted by hand, and SIGTERM handled with exit code 0", pod("Succeeded", deleted=T2, grace=10, containerStatuses=[ended(0, T2)]), {}, Cause.DELETED),
    ("deleted by hand in the middle of its grace period", pod("Succeeded", deleted=T2, grace=30, containerStatuses=[ended(0, T1)]), {}, Cause.DELETED),
    ("deleted from a node with a notice", pod(deleted=T2), {"node": node("aws-node-termination-handler/spot-itn")}, Cause.SPOT_RECLAIMED),
    ("gone without a trace", None, {}, Cause.VANISHED),
    ("gone, old events", None, {"events": [event("Scheduled"), event("Started"), event("Killing")]}, Cause.VANISHED),
]  # fmt: skip


@pytest.mark.parametrize(("pod_object", "more", "cause"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_cause_of_a_death(pod_object: Object | None, more: Object, cause: Cause | None) -> None:
    death = cause_of(pod_object, **more)
    assert (death.cause if death else None) is cause


def test_every_cause_of_a_pod_is_in_the_table_or_made_elsewhere() -> None:
    elsewhere = {Cause.QUOTA, Cause.API_UNAVAILABLE, Cause.FORBIDDEN, Cause.INVALID, Cause.NEVER_STARTED}
    assert {row[3] for row in TABLE} - {None} == set(Cause) - elsewhere


def test_infrastructure_runs_again_and_the_task_s_own_doing_is_left_to_airflow() -> None:
    by_policy = {policy: {cause.code for cause in Cause if cause.policy is policy} for policy in Policy}
    assert by_policy[Policy.RUN_AGAIN] == {
        "preempted", "evicted", "node_pressure", "tainted", "node_lost", "node_shutdown", "spot_reclaimed", "rejected",
        "deleted", "vanished", "quota", "api_unavailable",
    }  # fmt: skip
    assert by_policy[Policy.FINAL] == {"bad_image_name", "invalid"}


def test_the_sentence_names_the_pod_the_cause_and_what_the_cluster_said() -> None:
    death = cause_of(pod("Failed", containerStatuses=[ended(3, message="no such table")]))
    assert death is not None
    assert (
        death.sentence("load-x") == "Pod load-x failed by itself: container base ended with exit code 3: no such table"
    )
    assert death.exit_code == 3
    death = cause_of(pod("Failed", reason="OutOfcpu", message="Node didn't have enough resource: cpu"))
    assert "rejected by its node before it started: OutOfcpu: Node didn't have" in death.sentence("load-x")


def test_the_container_that_counts_can_have_another_name() -> None:
    both = pod("Failed", containerStatuses=[ended(0, name="main"), ended(1, name="proxy")])
    assert cause_of(both, container="main").exit_code == 1
    assert cause_of(pod(containerStatuses=[ended(4, name="main"), running("proxy")]), container="main").exit_code == 4


@pytest.mark.parametrize(
    ("status", "message", "cause"),
    [
        (
            403,
            'pods "p" is forbidden: exceeded quota: team, requested: cpu=1, used: cpu=4, limited: cpu=4',
            Cause.QUOTA,
        ),
        (403, 'pods is forbidden: User "x" cannot create resource "pods"', Cause.FORBIDDEN),
        (403, 'admission webhook "policy" denied the request: no latest tags', Cause.FORBIDDEN),
        (400, 'admission webhook "policy" denied the request: no latest tags', Cause.FORBIDDEN),
        (404, 'namespaces "x" not found', Cause.FORBIDDEN),
        (422, 'Pod "p" is invalid: spec.containers[0].image: Required value', Cause.INVALID),
        (429, "too many requests", Cause.API_UNAVAILABLE),
        (500, "etcdserver: request timed out", Cause.API_UNAVAILABLE),
        (503, "", Cause.API_UNAVAILABLE),
        (0, "Cannot connect to host", Cause.API_UNAVAILABLE),
    ],
)
def test_why_a_pod_could_not_be_made(status: int, message: str, cause: Cause) -> None:
    assert refusal_of(status, message).cause is cause


def test_when_it_was_told_to_stop() -> None:
    assert told_to_stop_at(pod()) is None
    by_deletion = told_to_stop_at(pod(deleted=T2, grace=10))
    assert by_deletion == told_to_stop_at(pod(conditions=target("EvictionByEvictionAPI", T1)))
    assert told_to_stop_at(pod(deleted=T2, conditions=target("PreemptionByScheduler", T0))) == by_deletion - 20


def test_a_node_of_which_nobody_hears() -> None:
    assert is_unreachable(None)
    assert is_unreachable(node(ready="Unknown"))
    assert not is_unreachable(node(ready="False"))
    assert not has_spot_notice(None)


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
STATES = st.fixed_dictionaries(
    {},
    optional={
        "terminated": st.fixed_dictionaries(
            {"exitCode": st.sampled_from([0, 1, 137, 143])},
            optional={
                "finishedAt": st.sampled_from([T0, T1, T2, "", "never"]),
                "reason": st.sampled_from(["", "OOMKilled"]),
            },
        ),
        "waiting": st.fixed_dictionaries({"reason": st.sampled_from(["ErrImagePull", "ContainerCreating"])}),
    },
)
PODS = st.builds(
    lambda phase, state, conditions, deleted, reason: pod(
        phase,
        deleted=deleted,
        containerStatuses=[{"name": "base", "state": state}],
        conditions=conditions,
        reason=reason,
    ),
    st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Unknown", ""]),
    STATES,
    st.sampled_from([[], *(target(reason, at) for reason in ("PreemptionByScheduler", "x") for at in (T0, T1, T2))]),
    st.sampled_from(["", T1, T2]),
    st.sampled_from([None, "Evicted", "DeadlineExceeded", "OutOfcpu"]),
)


@given(PODS)
def test_a_pod_that_was_told_to_stop_first_never_counts_as_done_nor_as_failed_by_itself(thing: Object) -> None:
    death = cause_of(thing)
    state = thing["status"]["containerStatuses"][0]["state"].get("terminated") or {}
    told = told_to_stop_at(thing)
    times = {T0: 0, T1: 20, T2: 30}
    if told is not None and state.get("finishedAt") in times and thing["status"]["reason"] is None:
        start = told_to_stop_at(pod(deleted=T0))
        if times[state["finishedAt"]] + start >= told:
            assert death is not None
            assert death.cause.policy is Policy.RUN_AGAIN
    if thing["status"]["phase"] == "Failed":
        assert death is not None or state.get("exitCode") == 0


@given(st.dictionaries(st.sampled_from(["metadata", "spec", "status"]), st.dictionaries(st.text(max_size=8), ANY_JSON)))
def test_a_pod_with_unknown_fields_is_no_reason_to_stumble(thing: Object) -> None:
    cause_of(thing)
