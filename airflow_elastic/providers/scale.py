"""Any object with a scale subresource: embedded node pools, Cluster API MachineDeployments, Karpenter static pools.

Options of the node pool: ``group``, ``version``, ``plural``, ``name`` and, where the object lives in one,
``namespace``.
The number is absolute, so asking twice asks for the same. Nodes to go are cordoned and marked first, so that the
mechanism prefers them, then the number is lowered.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

from airflow_elastic.errors import ConfigurationError, TemporaryError
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.snapshot import Node, NodePoolState
from airflow_elastic.providers.base import ClusterCalls, Outcome, PoolFacts, ProviderRefused, Target
from airflow_elastic.providers.release_mark import ReleaseMarks

__all__ = ["ScaleProvider"]

logger = logging.getLogger(__name__)

_MERGE_PATCH = "application/merge-patch+json"
_ATTEMPTS = 3
_HALF_RELEASE_SECONDS = 5.0
"""A mark older than this without the number lowered was left by a process that was killed between the two."""
_FIGHT_CHANGES = 3
_FIGHT_SECONDS = 600.0


class ScaleProvider:
    """Sets the replicas of one object."""

    is_autoscaled = False

    def __init__(self, pool: NodePool, api: ClusterCalls) -> None:
        self.pool = pool
        self._api = api
        self._path = _object_path(pool)
        self._marks = ReleaseMarks(api)
        self._last_seen: int | None = None
        self._foreign_changes: list[float] = []
        self._note = ""
        self._coming_since: float | None = None

    def state(self, facts: PoolFacts) -> NodePoolState:
        """Read the number; what it exceeds the nodes by is coming."""
        desired = self._desired()
        self._watch_for_others(desired, facts.now)
        standing = sum(not node.is_releasing and not node.is_lost for node in facts.nodes)
        coming = max(0, desired - standing)
        if not coming:
            self._coming_since = None
        elif self._coming_since is None:
            self._coming_since = facts.now
        failure, until = self._why_none_comes(facts.now, coming)
        return NodePoolState(self.pool.name, desired, coming, self._coming_since, failure, until)

    def apply(self, facts: PoolFacts, target: Target) -> Outcome:
        """Mark and cordon the nodes to go, then set the number; one that a pod took meanwhile is kept."""
        fought = self._fought_until(facts.now)
        if fought is not None:
            return Outcome(refused=(self._fight_sentence(fought),))
        outcome = Outcome()
        released: list[str] = []
        for name in target.release:
            kept_because = self._marks.release(name, facts.now)
            if kept_because:
                outcome += Outcome(refused=(f"{name} of {self.pool.name} stays: {kept_because}",))
            else:
                released.append(name)
        kept = len(target.release) - len(released)
        # Whatever the plan counted: the number never goes below the nodes that stand and were not chosen to go.
        staying = sum(
            not node.is_releasing and not node.is_lost and not node.is_booting and node.name not in released
            for node in facts.nodes
        )
        wanted = max(min(max(target.nodes + kept, self.pool.min_nodes), self.pool.max_nodes), staying)
        was = self._set(wanted, facts.now)
        if was != wanted:
            going = f"; {', '.join(released)} go first" if released else ""
            outcome += Outcome((f"{self.pool.name} was set from {was} to {wanted} node(s){going}",))
        return outcome

    def sweep(self, facts: PoolFacts, live: Collection[str]) -> Outcome:
        """Undo half releases: nodes that are marked while the number still asks for all of them."""
        outcome = Outcome()
        if self._note:
            outcome += Outcome((self._note,))
            self._note = ""
        going = [node for node in facts.nodes if node.is_releasing]
        if not going:
            return outcome
        stale = [node for node in going if self._marks.is_stale(node.name, facts.now - _HALF_RELEASE_SECONDS)]
        if not stale:
            return outcome
        desired = self._desired()
        standing = [node for node in facts.nodes if not node.is_lost and (node in stale or not node.is_releasing)]
        still_to_go = max(0, len(standing) - desired)
        for node in _youngest_first(stale)[: max(0, len(stale) - still_to_go)]:
            self._marks.undo(node.name)
            outcome += Outcome((f"{node.name} of {self.pool.name} is open again: its release was left half done",))
        return outcome

    def _scale_path(self) -> str:
        return f"{self._path}/scale"

    def _desired(self) -> int:
        return int((self._get(self._scale_path()).get("spec") or {}).get("replicas") or 0)

    def _set(self, wanted: int, now: float) -> int:
        """Set the number; return what it was. Nothing is sent where it is right already."""
        for _ in range(_ATTEMPTS):
            scale = self._get(self._scale_path())
            was = int((scale.get("spec") or {}).get("replicas") or 0)
            self._watch_for_others(was, now)
            if was == wanted:
                return was
            # With the version that we read: a change by somebody else in between is answered with 409.
            version = (scale.get("metadata") or {}).get("resourceVersion")
            body = {"metadata": {"resourceVersion": version} if version else {}, "spec": {"replicas": wanted}}
            status, answer = self._api.call("PATCH", self._scale_path(), body, content_type=_MERGE_PATCH)
            if status == 409:
                continue
            self._check(status, answer, f"setting {wanted} replicas")
            self._last_seen = wanted
            return was
        raise TemporaryError(f"{self._path} changes too fast to be scaled; it is tried again at the next tick")

    def _get(self, path: str) -> dict[str, Any]:
        status, answer = self._api.call("GET", path)
        self._check(status, answer, "reading it")
        return answer

    def _check(self, status: int, answer: dict[str, Any], what: str) -> None:
        if status < 300:
            return
        step = {
            403: "allow the controller's account get and patch on it and its scale subresource",
            404: "check group, version, plural, name and namespace in provider_options",
            422: "keep the pool's min_nodes and max_nodes within the object's own limits",
        }.get(status, "see the server's answer")
        raise ProviderRefused(
            f"node pool {self.pool.name}: {what} of {self._path} answered {status}: {answer.get('message', '')}; {step}"
        )

    def _watch_for_others(self, desired: int, now: float) -> None:
        """Somebody else changed the number: say so once, take it as the new base, and stop when it goes on."""
        before, self._last_seen = self._last_seen, desired
        if before is None or before == desired:
            return
        self._foreign_changes = [at for at in self._foreign_changes if abs(now - at) < _FIGHT_SECONDS] + [now]
        self._note = (
            f"somebody else set {self.pool.name} from {before} to {desired} node(s): "
            "taken as it is, the plan goes on from there"
        )
        logger.warning("%s", self._note)

    def _fought_until(self, now: float) -> float | None:
        recent = [at for at in self._foreign_changes if abs(now - at) < _FIGHT_SECONDS]
        return recent[-_FIGHT_CHANGES] + _FIGHT_SECONDS if len(recent) >= _FIGHT_CHANGES else None

    def _fight_sentence(self, until: float) -> str:
        return (
            f"the replicas of {self.pool.name} were changed by somebody else {len(self._foreign_changes)} times in "
            f"{_FIGHT_SECONDS / 60:.0f} min: left alone for now; let only one controller set {self._path}"
        )

    def _why_none_comes(self, now: float, coming: int) -> tuple[str, float | None]:
        fought = self._fought_until(now)
        if fought is not None:
            return self._fight_sentence(fought), fought
        if not coming:
            return "", None
        for condition in (self._get(self._path).get("status") or {}).get("conditions") or ():
            if condition.get("type") == "InsufficientCapacity" and condition.get("status") == "True":
                return f"{condition.get('reason', 'InsufficientCapacity')}: {condition.get('message', '')}", None
        return "", None


def _youngest_first(nodes: Collection[Node]) -> list[Node]:
    return sorted(nodes, key=lambda node: (node.created_at, node.name), reverse=True)


def _object_path(pool: NodePool) -> str:
    missing = [key for key in ("version", "plural", "name") if not pool.option(key)]
    if missing:
        raise ConfigurationError(
            f"node pool {pool.name!r} with provider scale lacks provider_options {', '.join(missing)}; "
            "name the object, e.g. {group: cluster.x-k8s.io, version: v1beta1, plural: machinedeployments, "
            "namespace: default, name: batch}"
        )
    group, version, namespace = pool.option("group"), pool.option("version"), pool.option("namespace")
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    place = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{place}/{pool.option('plural')}/{pool.option('name')}"
