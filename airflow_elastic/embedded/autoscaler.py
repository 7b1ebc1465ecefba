"""A reactive autoscaler: nodes for pods that found none, empty nodes away after a while."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_elastic.embedded.config import AutoscalerConfig, NodePoolConfig
from airflow_elastic.embedded.nodes.machine import Machine, MachineState
from airflow_elastic.embedded.nodes.objects import node_labels
from airflow_elastic.embedded.registry.requests import Amounts, amounts_of
from airflow_elastic.embedded.scheduler.filters import judge, judge_shape
from airflow_elastic.embedded.scheduler.infos import PodInfo
from airflow_elastic.embedded.scheduler.messages import insufficient

if TYPE_CHECKING:
    from airflow_elastic.embedded.plane import ControlPlane

__all__ = ["Autoscaler"]

NAME = "cluster-autoscaler"
# Pods below this priority get no nodes (cluster-autoscaler's --expendable-pods-priority-cutoff).
_EXPENDABLE_PRIORITY = -10
_SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
_DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
_MAX_REMEMBERED = 20_000


@dataclass(slots=True)
class _Room:
    """Free space on a node that is coming or could come."""

    pool: str
    free: Amounts

    def take(self, requests: Amounts) -> bool:
        """Put a pod in if it fits."""
        if any(amount > self.free.get(name, 0) for name, amount in requests.items()):
            return False
        for name, amount in requests.items():
            self.free[name] -= amount
        return True


@dataclass(slots=True)
class _Wanted:
    """What one scan decides for a node pool."""

    rooms: list[_Room] = field(default_factory=list)
    pods: list[PodInfo] = field(default_factory=list)


class Autoscaler:
    """Scans each node pool that has an autoscaler at its own pace; seconds are divided by the time speed."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._empty_since: dict[str, float] = {}
        self._mismatches: dict[tuple[str, int], str] = {}
        self._shapes: dict[str, Amounts] = {
            pool.name: amounts_of(dict(pool.allocatable)) for pool in plane.config.node_pools
        }

    def start(self) -> None:
        """Begin scanning."""
        for config in self._plane.config.node_pools:
            if config.autoscaler is not None:
                self._plan(config, config.autoscaler)

    def _plan(self, config: NodePoolConfig, autoscaler: AutoscalerConfig) -> None:
        seconds = autoscaler.scan_seconds / self._plane.time_speed
        self._plane.loop.call_later(seconds, self._scan, config, autoscaler)

    def _scan(self, config: NodePoolConfig, autoscaler: AutoscalerConfig) -> None:
        try:
            self._scale_up(config)
            self._scale_down(config, autoscaler)
        finally:
            self._plan(config, autoscaler)

    # Up

    def _scale_up(self, config: NodePoolConfig) -> None:
        waiting = [pod for pod in self._plane.scheduler.unschedulable() if self._counts(pod)]
        if not waiting:
            return
        rooms = self._coming()
        spec = self._plane.pools.spec(config.name)
        left = spec["maxNodes"] - spec["replicas"]
        wanted = _Wanted()
        refused: list[tuple[PodInfo, str]] = []
        for pod in waiting:
            if self._fits_coming(pod, rooms):
                continue
            why = self._why_not(pod, config)
            if why:
                refused.append((pod, f"1 {why}"))
            elif any(room.take(pod.requests) for room in wanted.rooms):
                wanted.pods.append(pod)
            elif len(wanted.rooms) < left:
                room = _Room(config.name, dict(self._shapes[config.name]))
                room.take(pod.requests)
                wanted.rooms.append(room)
                wanted.pods.append(pod)
            else:
                refused.append((pod, "1 max node group size reached"))
        if wanted.rooms:
            self._raise(config, spec, wanted)
        self._tell_refused(refused)

    def _raise(self, config: NodePoolConfig, spec: dict[str, int], wanted: _Wanted) -> None:
        before = spec["replicas"]
        after = before + len(wanted.rooms)
        message = f"pod triggered scale-up: [{{{config.name} {before}->{after} (max: {spec['maxNodes']})}}]"
        for pod in wanted.pods:
            self._plane.recorder.emit(pod.entry.obj, "TriggeredScaleUp", message, NAME, repeats=True)
        self._plane.pools.scale(config.name, after, NAME)

    def _tell_refused(self, refused: list[tuple[PodInfo, str]]) -> None:
        several = sum(1 for pool in self._plane.config.node_pools if pool.autoscaler is not None) > 1
        for pod, why in refused:
            # With several autoscaled pools another one may take the pod: only those that none takes are told.
            if several and any(
                pool.autoscaler is not None and not self._why_not(pod, pool) for pool in self._plane.config.node_pools
            ):
                continue
            message = f"pod didn't trigger scale-up: {why}"
            self._plane.recorder.emit(pod.entry.obj, "NotTriggerScaleUp", message, NAME, repeats=True)

    @staticmethod
    def _counts(pod: PodInfo) -> bool:
        return pod.priority >= _EXPENDABLE_PRIORITY and not pod.nominated and not pod.terminating

    def _coming(self) -> list[_Room]:
        """Return the room on nodes that were asked for and are not ready yet, the cloud's refusals included."""
        rooms = []
        pools = self._plane.pools
        for name, config in pools.configs.items():
            machines = [machine for machine in pools.fleet.of_pool(name) if machine.counted]
            coming = sum(1 for m in machines if m.state in (MachineState.BOOTING, MachineState.REGISTERED))
            coming += max(0, pools.spec(name)["replicas"] - len(machines))
            rooms += [_Room(name, dict(self._shapes[config.name])) for _ in range(coming)]
        return rooms

    def _fits_coming(self, pod: PodInfo, rooms: Iterable[_Room]) -> bool:
        for node in self._plane.scheduler.node_infos().values():
            # Room that came up since the pod was last tried: the scheduler places it in a moment.
            if node.fits(pod.requests) and not judge(pod.constraints, node).reason:
                return True
        return any(
            not self._mismatch(pod, self._plane.pools.configs[room.pool]) and room.take(pod.requests) for room in rooms
        )

    def _mismatch(self, pod: PodInfo, config: NodePoolConfig) -> str:
        """Return why a pod does not accept nodes of a pool, whatever their size; remembered for its likes."""
        key = (config.name, pod.constraints.number)
        known = self._mismatches.get(key)
        if known is None:
            if len(self._mismatches) > _MAX_REMEMBERED:
                self._mismatches.clear()
            labels = node_labels("", config)
            taints = [dict(taint) for taint in config.taints]
            known = self._mismatches[key] = judge_shape(pod.constraints, "", labels, taints).reason
        return known

    def _why_not(self, pod: PodInfo, config: NodePoolConfig) -> str:
        """Return why a new node of this pool would not take the pod; "" if it would."""
        mismatch = self._mismatch(pod, config)
        if mismatch:
            return mismatch
        shape = self._shapes[config.name]
        lacking = [name for name, amount in pod.requests.items() if amount > shape.get(name, 0)]
        return insufficient(lacking[0]) if lacking else ""

    # Down

    def _scale_down(self, config: NodePoolConfig, autoscaler: AutoscalerConfig) -> None:
        now = time.monotonic()
        for machine in self._plane.pools.fleet.of_pool(config.name):
            if machine.state is not MachineState.READY or not self._removable(machine):
                self._empty_since.pop(machine.name, None)
                continue
            since = self._empty_since.setdefault(machine.name, now)
            spec = self._plane.pools.spec(config.name)
            if now - since < autoscaler.empty_seconds / self._plane.time_speed or spec["replicas"] <= spec["minNodes"]:
                continue
            self._empty_since.pop(machine.name, None)
            self._plane.pools.remove_one(machine, NAME)

    def _removable(self, machine: Machine) -> bool:
        entry = self._plane.store("nodes").get(("", machine.name))
        if entry is None or not self._plane.scheduler.is_empty(machine.name):
            return False
        annotations = entry.obj["metadata"].get("annotations") or {}
        return annotations.get(_SCALE_DOWN_DISABLED) != "true" and annotations.get(_DO_NOT_DISRUPT) != "true"
