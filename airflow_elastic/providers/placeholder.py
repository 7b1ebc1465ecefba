"""Placeholder pods: one pause pod for each warm node makes any autoscaler bring that node and keep it.

Real pods preempt them (priority −10, no grace period). They are bare pods: a preempted one is gone and is made again
only while the plan still wants that many warm nodes, so what tasks consume is never refilled behind their back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from airflow_elastic.errors import TemporaryError
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.snapshot import NodePoolState, Pod
from airflow_elastic.providers.base import ClusterCalls, Outcome, PoolFacts, ProviderRefused, Target, WarmShare
from airflow_elastic.providers.placeholder_pod import (
    PRIORITY_CLASS,
    owner_marks,
    placeholder_name,
    placeholder_pod,
    placeholder_size,
)

__all__ = ["PlaceholderProvider", "delete_placeholders"]

_MERGE_PATCH = "application/merge-patch+json"
_ORPHAN_SECONDS = 2.0
"""So long a placeholder may be without a live owner: the plan may hand it to another one meanwhile."""
_ASK_EVENTS_AFTER_SECONDS = 30.0
_ASK_EVENTS_EVERY_SECONDS = 15.0
_SHORTEST_PATIENCE_SECONDS = 300.0
_PATIENCE_FACTOR = 3.0


class PlaceholderProvider:
    """Works with any autoscaler, and with none: then placeholders only hold what stands."""

    is_autoscaled = True

    def __init__(self, pool: NodePool, api: ClusterCalls, namespace: str) -> None:
        self.pool = pool
        self._api = api
        self._namespace = namespace
        self._has_priority_class = False
        self._failure = ""
        self._asked_events_at = float("-inf")
        self._orphan_since: dict[str, float] = {}

    def state(self, facts: PoolFacts) -> NodePoolState:
        """Count placeholders that found no node: each stands for a node that is asked for, unless one is booting."""
        pending = [pod for pod in _alive(facts) if not pod.node]
        held = {pod.node for pod in (*facts.placeholders, *facts.task_pods) if pod.node and not pod.phase.is_finished}
        # A pending placeholder may be about to be bound to a node that stands free, or waits for one that boots.
        free = sum((node.usable and node.name not in held) or node.is_booting for node in facts.nodes)
        coming = max(0, len(pending) - free)
        oldest = min((pod.created_at for pod in pending), default=None)
        return NodePoolState(
            self.pool.name,
            coming_nodes=coming,
            coming_since=oldest if coming else None,
            failure=self._why_none_comes(facts, pending) if coming else "",
        )

    def apply(self, facts: PoolFacts, target: Target) -> Outcome:
        """Make the placeholders equal the warm shares; those beside tasks and on nodes to release go first."""
        busy = {pod.node for pod in facts.task_pods if pod.node and pod.takes_room}
        shares = _within(target.warm, max(0, self.pool.max_nodes - len(busy)))
        ranked = sorted(_alive(facts), key=lambda pod: _keep_rank(pod, busy, target.release), reverse=True)
        total = sum(share.nodes for share in shares)
        kept, surplus = ranked[:total], ranked[total:]
        outcome = delete_placeholders(self._api, surplus, "its warm node is not needed any more, or a task took it")
        owned: dict[str, list[Pod]] = {share.reservation_id: [] for share in shares}
        for pod in kept:
            owned.get(pod.placeholder_of, []).append(pod)
        free = [pod for pod in kept if pod.placeholder_of not in owned]
        for share in shares:
            free += owned[share.reservation_id][share.nodes :]
            del owned[share.reservation_id][share.nodes :]
        taken = [name for name in target.release if name in busy]
        outcome += Outcome(refused=tuple(f"{name} of {self.pool.name} stays: a task runs there" for name in taken))
        size = placeholder_size(facts)
        for share in shares:
            mine = owned[share.reservation_id]
            while free and len(mine) < share.nodes:
                mine.append(free.pop())
                outcome += self._hand_over(mine[-1], share)
            outcome += self._create(facts, share, len(mine), size)
        return outcome

    def sweep(self, facts: PoolFacts, live: Collection[str]) -> Outcome:
        """Delete placeholders that expired, ended, lost their node, or belong to no reservation that holds capacity."""
        lost = {node.name for node in facts.nodes if node.is_lost}
        orphans = {pod.name for pod in _alive(facts) if pod.placeholder_of not in live}
        self._orphan_since = {name: self._orphan_since.get(name, facts.now) for name in orphans}
        outcome = Outcome()
        for pod in facts.placeholders:
            if pod.is_deleting:
                continue
            if _expired(pod, facts.now):
                why = "it expired"
            elif pod.phase.is_finished:
                why = "it has ended"
            elif pod.node in lost:
                why = "its node is lost"
            elif abs(facts.now - self._orphan_since.get(pod.name, facts.now)) >= _ORPHAN_SECONDS:
                why = "no reservation owns it"
            else:
                continue
            outcome += delete_placeholders(self._api, [pod], why)
        return outcome

    def _hand_over(self, pod: Pod, share: WarmShare) -> Outcome:
        """Give a placeholder a new owner: its node is warm already and need not be asked for again."""
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
        status, answer = self._api.call("PATCH", path, {"metadata": owner_marks(share)}, content_type=_MERGE_PATCH)
        if status == 404:
            return Outcome()  # a task took its node this very moment: the next tick sees it
        if status >= 300:
            raise ProviderRefused(f"placeholder {pod.name} was not handed over ({status}): {answer.get('message', '')}")
        owner = f"{share.dag_id} {share.run_id}" if share.dag_id else self.pool.name
        return Outcome((f"placeholder {pod.name} now belongs to {owner}",))

    def _create(self, facts: PoolFacts, share: WarmShare, existing: int, size: dict[str, str]) -> Outcome:
        missing = share.nodes - existing
        if missing <= 0 or share.expires_at <= facts.now:
            return Outcome()
        self._ensure_priority_class()
        taken = {pod.name for pod in facts.placeholders}
        done = []
        for index in range(self.pool.max_nodes + len(taken)):
            name = placeholder_name(share.reservation_id, index)
            if name in taken:
                continue
            pod = placeholder_pod(name, self.pool, self._namespace, share, size)
            status, answer = self._api.call("POST", f"/api/v1/namespaces/{self._namespace}/pods", pod)
            if status == 403 and "riorityClass" in str(answer.get("message", "")):
                self._has_priority_class = False
                raise TemporaryError(f"the PriorityClass of {name} has vanished; it is made again at the next tick")
            if status not in (200, 201, 409):
                raise ProviderRefused(
                    f"placeholder {self._namespace}/{name} for {self.pool.name} was refused ({status}): "
                    f"{answer.get('message', '')}; the controller's account needs create and delete on pods"
                )
            if status != 409:  # 409: an earlier process made it, and the view does not show it yet: it is ours
                done.append(f"placeholder {name} asks for a node of {self.pool.name}")
            missing -= 1
            if missing == 0:
                break
        return Outcome(tuple(done))

    def _ensure_priority_class(self) -> None:
        if self._has_priority_class:
            return
        path = "/apis/scheduling.k8s.io/v1/priorityclasses"
        status, _ = self._api.call("GET", f"{path}/{PRIORITY_CLASS['metadata']['name']}")
        if status == 404:
            status, answer = self._api.call("POST", path, PRIORITY_CLASS)
            if status not in (200, 201, 409):
                raise ProviderRefused(
                    f"PriorityClass {PRIORITY_CLASS['metadata']['name']} could not be made ({status}): "
                    f"{answer.get('message', '')}; create it by hand or allow the controller to"
                )
        self._has_priority_class = True

    def _why_none_comes(self, facts: PoolFacts, pending: list[Pod]) -> str:
        """Return the autoscaler's own word from its events, or that the nodes are long overdue."""
        waited = facts.now - min(pod.created_at for pod in pending)
        if waited < _ASK_EVENTS_AFTER_SECONDS:
            self._failure = ""
            return ""
        if abs(facts.now - self._asked_events_at) >= _ASK_EVENTS_EVERY_SECONDS:
            self._asked_events_at = facts.now
            self._failure = self._autoscaler_says(pending[0])
        patience = max(_SHORTEST_PATIENCE_SECONDS, _PATIENCE_FACTOR * self.pool.boot_seconds_p95)
        if not self._failure and waited > patience:
            return (
                f"no node has come for placeholder {pending[0].name} in {waited:.0f} s; "
                f"check that an autoscaler serves {self.pool.name} and may add nodes"
            )
        return self._failure

    def _autoscaler_says(self, pod: Pod) -> str:
        path = f"/api/v1/namespaces/{pod.namespace}/events"
        status, answer = self._api.call("GET", path, query={"fieldSelector": f"involvedObject.name={pod.name}"})
        if status != 200:
            return ""  # events are a courtesy; without them the patience above decides
        events = [
            (str(each.get("lastTimestamp") or each.get("eventTime") or ""), each)
            for each in answer.get("items") or ()
            if each.get("reason") in ("NotTriggerScaleUp", "TriggeredScaleUp", "FailedScaleUp")
        ]
        last = max(events, key=lambda each: each[0], default=None)
        if last is None or last[1].get("reason") == "TriggeredScaleUp":
            return ""
        return f"the autoscaler says {last[1]['reason']}: {str(last[1].get('message', ''))[:200]}"


def delete_placeholders(api: ClusterCalls, pods: Iterable[Pod], why: str) -> Outcome:
    """Delete placeholders at once; one that is gone already is no error.

    Raises:
        TemporaryError: no answer.
        ProviderRefused: deleting is not allowed.
    """
    done = []
    for pod in pods:
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
        status, answer = api.call(
            "DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        )
        if status == 404:
            continue
        if status >= 300:
            raise ProviderRefused(
                f"placeholder {pod.name} could not be deleted ({status}): {answer.get('message', '')}"
            )
        done.append(f"placeholder {pod.name} was removed: {why}")
    return Outcome(tuple(done))


def _alive(facts: PoolFacts) -> list[Pod]:
    return [
        pod
        for pod in facts.placeholders
        if not pod.is_deleting and not pod.phase.is_finished and not _expired(pod, facts.now)
    ]


def _keep_rank(pod: Pod, busy: Collection[str], release: Collection[str]) -> tuple[int, str]:
    """Return how much a placeholder is worth keeping: one that holds an idle node most, beside a task least."""
    if pod.node in busy:
        rank = 0
    elif pod.node in release:
        rank = 1
    else:
        rank = 3 if pod.node else 2
    return rank, pod.name


def _within(shares: Iterable[WarmShare], room: int) -> list[WarmShare]:
    """Return the shares cut, from the last on, to what the pool's maximum leaves beside the nodes that tasks occupy."""
    cut = []
    for share in shares:
        nodes = min(share.nodes, room)
        room -= nodes
        cut.append(WarmShare(share.reservation_id, nodes, share.expires_at, share.dag_id, share.run_id))
    return cut


def _expired(pod: Pod, now: float) -> bool:
    return pod.expires_at is not None and pod.expires_at <= now
