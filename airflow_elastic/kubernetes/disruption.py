"""Why did this pod die: from a pod, its node and their events to a cause, and what follows from it. Pure.

Objects are plain dicts as the Kubernetes API has them (camelCase). What decides between "the infrastructure took it"
and "it failed by itself" is the order in time: what ended before the pod was told to stop ended by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from airflow_elastic.kubernetes.notices import has_spot_notice, is_spot, is_unreachable
from airflow_elastic.kubernetes.quantities import unix_seconds

__all__ = ["Cause", "Death", "Policy", "cause_of", "refusal_of", "told_to_stop_at"]

Object = Mapping[str, Any]
_XCOM_SIDECAR = "airflow-xcom-sidecar"


class Policy(Enum):
    """What follows from a cause."""

    RUN_AGAIN = "run again in the same try"
    """The infrastructure's doing: costs no retry, within the task's budget."""
    RETRY = "Airflow's retries"
    """The task's own doing, or nothing that another node would change at once."""
    FINAL = "no retry"
    """It would fail in the same way for ever."""


class Cause(Enum):
    """Why a pod is dead (or was never made): code, policy, and what a person reads after the pod's name."""

    PREEMPTED = ("preempted", Policy.RUN_AGAIN, "was preempted by a pod of higher priority")
    EVICTED = ("evicted", Policy.RUN_AGAIN, "was evicted through the API (a drain, an autoscaler)")
    NODE_PRESSURE = ("node_pressure", Policy.RUN_AGAIN, "was evicted by its node, which ran short of a resource")
    TAINTED = ("tainted", Policy.RUN_AGAIN, "was removed because its node got a NoExecute taint")
    NODE_LOST = ("node_lost", Policy.RUN_AGAIN, "was lost with its node")
    NODE_SHUTDOWN = ("node_shutdown", Policy.RUN_AGAIN, "was ended by the shutdown of its node")
    SPOT_RECLAIMED = ("spot_reclaimed", Policy.RUN_AGAIN, "lost its node: the cloud took the spot machine back")
    REJECTED = ("rejected", Policy.RUN_AGAIN, "was rejected by its node before it started")
    DELETED = ("deleted", Policy.RUN_AGAIN, "was deleted from outside, with no reason given")
    VANISHED = ("vanished", Policy.RUN_AGAIN, "is gone, and nobody saw how it ended")
    QUOTA = ("quota", Policy.RUN_AGAIN, "is refused by a resource quota")
    API_UNAVAILABLE = ("api_unavailable", Policy.RUN_AGAIN, "could not be made: the Kubernetes API is not available")
    IMAGE_PULL = ("image_pull", Policy.RETRY, "cannot pull its image")
    NEVER_STARTED = ("never_started", Policy.RETRY, "did not start in the time that it was given")
    CANNOT_START = ("cannot_start", Policy.RETRY, "has a command that cannot be started")
    OUT_OF_MEMORY = ("out_of_memory", Policy.RETRY, "ran out of the memory that it may use")
    STORAGE_LIMIT = ("storage_limit", Policy.RETRY, "used more local storage than it may")
    DEADLINE = ("deadline", Policy.RETRY, "ran longer than it may")
    APPLICATION = ("application", Policy.RETRY, "failed by itself")
    FORBIDDEN = ("forbidden", Policy.RETRY, "may not be made")
    BAD_IMAGE_NAME = ("bad_image_name", Policy.FINAL, "names an image that cannot exist")
    INVALID = ("invalid", Policy.FINAL, "is not a valid pod")

    def __init__(self, code: str, policy: Policy, what: str) -> None:
        self.code = code
        self.policy = policy
        self.what = what

    @classmethod
    def of_code(cls, code: object) -> Cause:
        """Return the cause with a code; VANISHED for one that is not known (written by another version)."""
        return next((cause for cause in cls if cause.code == code), cls.VANISHED)


@dataclass(frozen=True, slots=True)
class Death:
    """A cause with what the cluster itself said about it."""

    cause: Cause
    detail: str = ""
    exit_code: int | None = None
    """Of the base container, where it ended by itself."""

    def sentence(self, pod: str) -> str:
        """Return one sentence for a person; ``pod`` is the pod's name."""
        return f"Pod {pod} {self.cause.what}{f': {self.detail}' if self.detail else ''}"


_BY_DISRUPTION = {
    "PreemptionByScheduler": Cause.PREEMPTED,
    "PreemptionByKubeScheduler": Cause.PREEMPTED,
    "EvictionByEvictionAPI": Cause.EVICTED,
    "DeletionByTaintManager": Cause.TAINTED,
    "DeletionByPodGC": Cause.NODE_LOST,
    "TerminationByKubelet": Cause.NODE_PRESSURE,
}
_BY_STATUS_REASON = {
    "Evicted": Cause.NODE_PRESSURE,
    "NodeLost": Cause.NODE_LOST,
    "NodeShutdown": Cause.NODE_SHUTDOWN,
    "Shutdown": Cause.NODE_SHUTDOWN,
    "Terminated": Cause.NODE_SHUTDOWN,
    "Preempting": Cause.PREEMPTED,  # by the kubelet, for a critical pod
    "Preempted": Cause.PREEMPTED,
}
_BY_EVENT = {
    "Preempted": Cause.PREEMPTED,
    "Preempting": Cause.PREEMPTED,
    "Evicted": Cause.NODE_PRESSURE,
    "EvictedByVPA": Cause.EVICTED,
    "TaintManagerEviction": Cause.TAINTED,
    "NodeControllerEviction": Cause.NODE_LOST,
    "DeletingNode": Cause.NODE_LOST,
    "RemovingNode": Cause.NODE_LOST,
}
_NODE_IS_TO_BLAME = frozenset(
    {Cause.EVICTED, Cause.TAINTED, Cause.NODE_LOST, Cause.NODE_SHUTDOWN, Cause.DELETED, Cause.VANISHED}
)
# The kubelet's words when a pod exceeds its own limits: then the eviction is the task's own fault.
_OWN_STORAGE = ("exceeds the total limit", "exceeded its local ephemeral storage limit", "exceeds the limit")
_CANNOT_START = frozenset({"StartError", "ContainerCannotRun"})
# The node came back and knows its containers no more.
_FORGOTTEN = frozenset({"ContainerStatusUnknown", "Unknown"})
_BAD_IMAGE = frozenset({"InvalidImageName", "ErrImageNeverPull"})
_NO_IMAGE = frozenset({"ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable"})
# What passes by itself: the kubelet tries again, and the time to start bounds it.
_PASSING_PULL_TROUBLE = (
    "qps exceeded", "rate limit", "too many requests", "toomanyrequests", "quota exceeded", "account limit",
    "unavailable", "timeout", "timed out", "bad gateway", "connection refused", "connection reset", "no such host",
    "temporary failure", "unexpected eof",
)  # fmt: skip


def cause_of(
    pod: Object | None,
    node: Object | None = None,
    events: Iterable[Object] = (),
    *,
    node_is_gone: bool = False,
    container: str = "base",
) -> Death | None:
    """Return why a pod is dead, or doomed; None while it lives and when it has done its work.

    Args:
        pod: the pod object; None where the API has it no more.
        node: its node as it is now; None where it was not looked up.
        events: events of the pod and of its node, oldest first.
        node_is_gone: its node was looked up and does not exist.
        container: the container whose end is the task's end.
    """
    events = tuple(events)
    if pod is None:
        return _with_node(_of_events(events) or Death(Cause.VANISHED), node, events, node_is_gone)
    if has_succeeded(pod, container):
        return None
    own, ended_at = _own_failure(pod, container)
    disruption = _disruption(pod)
    told_at = told_to_stop_at(pod)
    # What ended by itself before anybody told it to stop is not the infrastructure's doing, whatever came later.
    if own and (disruption is None if told_at is None else _is_before(ended_at, told_at)):
        return own
    if disruption:
        return _with_node(disruption, node, events, node_is_gone)
    if (pod.get("metadata") or {}).get("deletionTimestamp"):
        return _with_node(_of_events(events) or Death(Cause.DELETED), node, events, node_is_gone)
    if node_is_gone and _phase(pod) not in ("Succeeded", "Failed") and (pod.get("spec") or {}).get("nodeName"):
        return _with_node(Death(Cause.NODE_LOST), node, events, node_is_gone)
    if _phase(pod) == "Failed":
        return Death(Cause.APPLICATION, "its phase is Failed, and nothing tells why")
    return _cannot_pull(pod)


def has_succeeded(pod: Object, container: str = "base") -> bool:
    """Tell whether the task's container has done its work: exit code 0, and not because it was told to stop.

    A program that saves its state and exits with 0 on SIGTERM has not finished.
    """
    ended = _terminated(pod, container)
    if ended is None:
        return _phase(pod) == "Succeeded" and told_to_stop_at(pod) is None
    told_at = told_to_stop_at(pod)
    if ended.get("exitCode") != 0 or not (told_at is None or _is_before(_ended_at(ended), told_at)):
        return False
    if _phase(pod) != "Failed" or _disruption(pod):
        return True
    return not any(name != _XCOM_SIDECAR for name, _ in _failures(pod))


def told_to_stop_at(pod: Object) -> float | None:
    """Return the Unix seconds at which a pod was told to stop (deleted, evicted, preempted); None: it was not."""
    metadata = pod.get("metadata") or {}
    times = []
    deleted = unix_seconds(metadata.get("deletionTimestamp"))
    if deleted is not None:
        times.append(deleted - float(metadata.get("deletionGracePeriodSeconds") or 0))
    target = _disruption_target(pod)
    if target is not None:
        times.append(unix_seconds(target.get("lastTransitionTime")) or 0.0)
    return min(times, default=None)


def refusal_of(status: int, message: str) -> Death:
    """Return why a pod could not be created, from the HTTP status (0: no answer) and the message of the API server."""
    words = message.lower()
    detail = message.strip()[:400]
    if status == 403 and "exceeded quota" in words:
        return Death(Cause.QUOTA, detail)
    if status in (0, 408, 429) or status >= 500:
        return Death(Cause.API_UNAVAILABLE, detail)
    if status in (400, 422) and "admission webhook" not in words:
        return Death(Cause.INVALID, detail)
    return Death(Cause.FORBIDDEN, detail)


def _disruption(pod: Object) -> Death | None:
    """Return what the cluster itself says that it did to the pod."""
    status = pod.get("status") or {}
    reason, message = str(status.get("reason") or ""), str(status.get("message") or "")
    target = _disruption_target(pod)
    if target is not None:
        said = str(target.get("reason") or "")
        cause = _BY_DISRUPTION.get(said, Cause.EVICTED)
        detail = message or str(target.get("message") or said)
        if said == "TerminationByKubelet":  # pressure, shutdown or a critical pod: the status tells which
            cause = _BY_STATUS_REASON.get(reason, Cause.NODE_PRESSURE)
        return Death(cause, detail)
    if reason == "Evicted" and any(words in message for words in _OWN_STORAGE):
        return None
    if reason in _BY_STATUS_REASON and (reason != "Terminated" or "shutdown" in message.lower()):
        return Death(_BY_STATUS_REASON[reason], message)
    forgotten = [state for _, state in _failures(pod) if state.get("reason") in _FORGOTTEN]
    if _phase(pod) == "Unknown" or forgotten:
        return Death(Cause.NODE_LOST, message or str(forgotten[0].get("message") or "") if forgotten else message)
    started = status.get("containerStatuses") or status.get("initContainerStatuses")
    if _phase(pod) == "Failed" and not started and reason != "DeadlineExceeded":
        return Death(Cause.REJECTED, ": ".join(filter(None, (reason, message))))
    return None


def _own_failure(pod: Object, container: str) -> tuple[Death | None, float]:
    """Return how the pod failed by itself, as far as its containers and status tell, and when."""
    status = pod.get("status") or {}
    reason, message = str(status.get("reason") or ""), str(status.get("message") or "")
    if reason == "DeadlineExceeded":
        return Death(Cause.DEADLINE, message), 0.0
    if reason == "Evicted" and any(words in message for words in _OWN_STORAGE):
        return Death(Cause.STORAGE_LIMIT, message), 0.0
    failures = _failures(pod)
    if _phase(pod) != "Failed":  # its other containers may still end as they like
        failures = [(name, state) for name, state in failures if name == container]
    for name, state in sorted(failures, key=lambda each: each[0] != container):
        if state.get("reason") not in _FORGOTTEN:
            return _of_container(name, state), _ended_at(state)
    return None, 0.0


def _of_container(name: str, state: Object) -> Death:
    reason, message = str(state.get("reason") or ""), str(state.get("message") or "").strip()
    code = int(state.get("exitCode") or 0)
    cause = Cause.APPLICATION
    if reason == "OOMKilled":
        cause = Cause.OUT_OF_MEMORY
    elif reason in _CANNOT_START:
        cause = Cause.CANNOT_START
    said = f"container {name} ended with exit code {code}{f' ({reason})' if reason not in ('', 'Error') else ''}"
    return Death(cause, f"{said}: {message}" if message else said, code)


def _failures(pod: Object) -> list[tuple[str, Object]]:
    status = pod.get("status") or {}
    return [
        (str(each.get("name")), ended)
        for each in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
        if (ended := (each.get("state") or {}).get("terminated")) and ended.get("exitCode") != 0
    ]


def _cannot_pull(pod: Object) -> Death | None:
    status = pod.get("status") or {}
    for each in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        waiting = (each.get("state") or {}).get("waiting") or {}
        reason, message = str(waiting.get("reason") or ""), str(waiting.get("message") or "")
        if reason in _BAD_IMAGE:
            return Death(Cause.BAD_IMAGE_NAME, message or reason)
        if reason in _NO_IMAGE and not any(words in message.lower() for words in _PASSING_PULL_TROUBLE):
            return Death(Cause.IMAGE_PULL, message or reason)
    return None


def _of_events(events: Iterable[Object]) -> Death | None:
    for event in reversed(tuple(events)):
        cause = _BY_EVENT.get(str(event.get("reason")))
        if cause:
            return Death(cause, str(event.get("message") or ""))
    return None


def _with_node(death: Death, node: Object | None, events: Iterable[Object], node_is_gone: bool) -> Death:
    """Name the machine's end where that is what is behind it."""
    if death.cause not in _NODE_IS_TO_BLAME:
        return death
    if has_spot_notice(node, events) or (death.cause is Cause.NODE_SHUTDOWN and is_spot(node)):
        return Death(Cause.SPOT_RECLAIMED, death.detail)
    if death.cause in (Cause.TAINTED, Cause.DELETED, Cause.VANISHED) and (
        node_is_gone or (node is not None and is_unreachable(node))
    ):
        return Death(Cause.NODE_LOST, death.detail)
    return death


def _ended_at(terminated: Object) -> float:
    # An end without a time counts as late: running again is the safe side.
    return unix_seconds(terminated.get("finishedAt")) or float("inf")


def _is_before(ended_at: float, told_at: float) -> bool:
    # The API's clock has whole seconds: within the same one the order is unknown, and running again is the safe side.
    return ended_at < int(told_at)


def _terminated(pod: Object, container: str) -> Object | None:
    for each in (pod.get("status") or {}).get("containerStatuses") or ():
        if each.get("name") == container:
            ended: Object | None = (each.get("state") or {}).get("terminated")
            return ended
    return None


def _disruption_target(pod: Object) -> Object | None:
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True":
            found: Object = condition
            return found
    return None


def _phase(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase") or "")
