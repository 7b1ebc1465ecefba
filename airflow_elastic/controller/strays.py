"""Leftovers of ours beyond the declared node pools: a pool that was taken out of the file, or is served otherwise now.

Providers sweep their own pools. Nobody sweeps a placeholder whose pool is not declared any more (it keeps its node and
costs on), nor lifts the mark from a node whose release was cut off there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_elastic.controller.warm import pool_owner_id
from airflow_elastic.kubernetes.nodes import node_pool_of
from airflow_elastic.kubernetes.quantities import unix_seconds
from airflow_elastic.model.labels import ANNOTATION_RELEASE
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.reservation import Reservation
from airflow_elastic.model.settings import Settings
from airflow_elastic.model.snapshot import Pod
from airflow_elastic.providers.base import ClusterCalls, Outcome

__all__ = ["Strays"]

_MARK_SECONDS = 900.0
"""A mark on a node of no declared pool is lifted after this: its mechanism has had the time to remove the node."""
_RETIRED_MARK_SECONDS = 5.0
"""The same where this very process served the pool until it was taken out of the file."""
_MOST_OWNERS = 20_000
_WITHOUT_MARKS = ("none", "", "placeholder")
"""Providers that mark no node: a mark there is an earlier provider's."""


@dataclass(slots=True)
class Strays:
    """Finds and removes them. Placeholders of other installations are left alone until they expire."""

    api: ClusterCalls
    _owners: dict[str, None] = field(default_factory=dict)
    """Ids of the reservations that this installation is known to have had, the latest last."""
    _retired: dict[str, NodePool] = field(default_factory=dict)

    def owned(self, reservations: Iterable[Reservation]) -> None:
        """Note whose placeholders are ours, for the time when their pool is gone."""
        self._owners.update((each.id, None) for each in reservations)
        if len(self._owners) > _MOST_OWNERS:
            self._owners = dict(list(self._owners.items())[_MOST_OWNERS // 2 :])

    def changed(self, before: Settings, after: Settings) -> None:
        """Note which pools are served otherwise, or not at all, from now on."""
        self._owners.update((pool_owner_id(pool), None) for pool in before.node_pools)
        kept = {(pool.name, pool.selector, pool.provider) for pool in after.node_pools}
        for pool in before.node_pools:
            if (pool.name, pool.selector, pool.provider) not in kept:
                self._retired[pool.name] = pool
        for pool in after.node_pools:
            old = self._retired.get(pool.name)
            if old is not None and (old.selector, old.provider) == (pool.selector, pool.provider):
                del self._retired[pool.name]

    def sweep(
        self, settings: Settings, pods: Iterable[Pod], raw_nodes: Iterable[Mapping[str, Any]], now: float
    ) -> Outcome:
        """Delete stray placeholders that are ours or have expired, and lift marks that nobody will act upon.

        Raises:
            TemporaryError: no answer; the rest is done later.
            ProviderRefused: deleting or patching is not allowed.
        """
        outcome = Outcome()
        held = {pool.name for pool in settings.node_pools if pool.provider == "placeholder"}
        strays = [
            pod
            for pod in pods
            if pod.placeholder_of
            and not pod.is_deleting
            and not held.intersection(pod.node_pools[:1])
            and (pod.placeholder_of in self._owners or (pod.expires_at is not None and pod.expires_at <= now))
        ]
        if strays:
            from airflow_elastic.providers.placeholder import delete_placeholders

            outcome += delete_placeholders(self.api, strays, "no declared node pool holds it any more")
        for node in raw_nodes:
            if self._is_left_marked(node, settings, now):
                outcome += self._lift(str(node["metadata"].get("name", "")))
        return outcome

    def _is_left_marked(self, node: Mapping[str, Any], settings: Settings, now: float) -> bool:
        metadata = node.get("metadata") or {}
        annotations = metadata.get("annotations") or {}
        if ANNOTATION_RELEASE not in annotations or metadata.get("deletionTimestamp"):
            return False
        labels = metadata.get("labels") or {}
        pool = node_pool_of(labels, settings)
        if pool is not None and pool.provider not in _WITHOUT_MARKS:
            return False
        was_ours = any(all(labels.get(key) == value for key, value in each.selector) for each in self._retired.values())
        age = now - _seconds(annotations[ANNOTATION_RELEASE])
        limit = _RETIRED_MARK_SECONDS if was_ours or pool is not None else _MARK_SECONDS
        return not -limit <= age < limit

    def _lift(self, node: str) -> Outcome:
        from airflow_elastic.providers.release_mark import ReleaseMarks

        if not ReleaseMarks(self.api).undo(node):
            return Outcome()
        return Outcome((f"{node} is open again: its release was left half done by a pool that is not served any more",))


def _seconds(text: Any) -> float:
    try:
        return float(text)
    except (TypeError, ValueError):
        return unix_seconds(text) or 0.0
