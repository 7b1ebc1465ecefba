"""The machines: launch, register, ready, removal and loss, each after its time."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from airflow_elastic.embedded.config import NodePoolConfig
from airflow_elastic.embedded.nodes.machine import Machine, MachineState, boot_seconds
from airflow_elastic.embedded.nodes.objects import new_node, with_ready
from airflow_elastic.embedded.registry.conditions import condition, pod_with_condition
from airflow_elastic.embedded.registry.requests import amounts_of
from airflow_elastic.embedded.store.entry import DELETED, Change
from airflow_elastic.embedded.types import Object

if TYPE_CHECKING:
    from airflow_elastic.embedded.plane import ControlPlane

__all__ = ["Fleet"]

_NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
# A node is registered, but not ready, for about this long; part of the boot time.
_REGISTERED_SECONDS = 1.0
_REMOVAL_TAINT = "ToBeDeletedByClusterAutoscaler"


class Fleet:
    """Every machine of every node pool. Seconds are divided by the cluster's time speed."""

    def __init__(
        self,
        plane: ControlPlane,
        configs: Mapping[str, NodePoolConfig],
        rng: random.Random,
        changed: Callable[[str], None],
    ) -> None:
        self._plane = plane
        self._configs = configs
        self._rng = rng
        self._changed = changed
        self._nodes = plane.store("nodes")
        self._machines: dict[str, Machine] = {}
        self._launched = 0
        self._nodes.listen(self._on_node_change)

    def get(self, name: str) -> Machine | None:
        """Return the machine of a node."""
        return self._machines.get(name)

    def of_pool(self, pool: str) -> list[Machine]:
        """Return the pool's machines that are not gone."""
        return [machine for machine in self._machines.values() if machine.pool == pool]

    def alive(self, name: str) -> bool:
        """Tell whether a node's machine can run pods."""
        machine = self._machines.get(name)
        return machine is not None and machine.state in (
            MachineState.REGISTERED, MachineState.READY, MachineState.REMOVING,
        )  # fmt: skip

    def launch(self, config: NodePoolConfig) -> Machine:
        """Request a machine; it registers and is ready after its boot time."""
        machine = self._request(config)
        boot = boot_seconds(config, self._rng) / self._plane.time_speed
        shown = min(_REGISTERED_SECONDS / self._plane.time_speed, boot)
        machine.timer = self._plane.loop.call_later(boot - shown, self._register, machine, shown)
        self._changed(machine.pool)
        return machine

    def launch_ready(self, config: NodePoolConfig) -> Machine:
        """Make a machine that is ready at once."""
        machine = self._request(config)
        self._register(machine, None)
        self._ready(machine)
        return machine

    def remove(self, machine: Machine) -> None:
        """Take a machine away: nothing new is placed on it, and it ends after the pool's removal time."""
        machine.cancel_timer()
        entry = self._nodes.get(("", machine.name))
        if entry is None:
            self._end(machine)
            return
        machine.state = MachineState.REMOVING
        taint = {"key": _REMOVAL_TAINT, "value": "", "effect": "NoSchedule"}
        spec = {
            **entry.obj["spec"],
            "unschedulable": True,
            "taints": [*(entry.obj["spec"].get("taints") or ()), taint],
        }
        self._nodes.put(entry.key, {**entry.obj, "metadata": dict(entry.obj["metadata"]), "spec": spec})
        seconds = self._configs[machine.pool].remove_seconds / self._plane.time_speed
        machine.timer = self._plane.loop.call_later(seconds, self._remove_object, machine)
        self._changed(machine.pool)

    def lose(self, machine: Machine) -> None:
        """Let a machine die: its pods stop silently, the node goes NotReady, later the Node object is removed."""
        machine.cancel_timer()
        entry = self._nodes.get(("", machine.name))
        if entry is None:
            self._end(machine)
            return
        machine.state = MachineState.LOST
        self._plane.kubelet.lose_node(machine.name)
        self._nodes.put(entry.key, with_ready(entry.obj, "Unknown"))
        self._mark_pods_unready(machine.name)
        seconds = self._plane.config.lost_node_seconds / self._plane.time_speed
        machine.timer = self._plane.loop.call_later(seconds, self._remove_object, machine)
        self._changed(machine.pool)

    def cut(self, machine: Machine) -> None:
        """Take a machine away at once, with whatever runs on it."""
        machine.cancel_timer()
        if ("", machine.name) in self._nodes:
            self._remove_object(machine)
        else:
            self._end(machine)

    def facts(self, machine: Machine) -> Object:
        """Return what every line of the event log tells about a node."""
        config = self._configs[machine.pool]
        return {
            "node": machine.name,
            "pool": machine.pool,
            "capacity_type": config.capacity_type,
            "allocatable": amounts_of(dict(config.allocatable)),
        }

    def _request(self, config: NodePoolConfig) -> Machine:
        self._launched += 1
        suffix = "".join(self._rng.choices(_NAME_LETTERS, k=5))
        machine = Machine(f"{config.name}-{self._launched:04d}-{suffix}", config.name, self._launched)
        self._machines[machine.name] = machine
        self._log("node_launch_requested", machine)
        return machine

    def _register(self, machine: Machine, ready_after: float | None) -> None:
        machine.state = MachineState.REGISTERED
        node = new_node(machine.name, self._configs[machine.pool], machine.index, self._plane.config.kubernetes_version)
        self._log("node_registered", machine)
        self._nodes.put(("", machine.name), node)
        if ready_after is not None:
            machine.timer = self._plane.loop.call_later(ready_after, self._ready, machine)
            self._changed(machine.pool)

    def _ready(self, machine: Machine) -> None:
        machine.timer = None
        entry = self._nodes.get(("", machine.name))
        if entry is None:
            return
        machine.state = MachineState.READY
        stored = self._nodes.put(entry.key, with_ready(entry.obj, "True"))
        message = f"Node {machine.name} status is now: NodeReady"
        self._plane.recorder.emit(stored.obj, "NodeReady", message, "kubelet", host=machine.name)
        self._changed(machine.pool)

    def _remove_object(self, machine: Machine) -> None:
        machine.state = MachineState.GONE
        self._nodes.remove(("", machine.name))

    def _on_node_change(self, change: Change) -> None:
        if change.type != DELETED:
            return
        machine = self._machines.get(change.entry.key[1])
        if machine is None:
            return
        was_planned = machine.state is MachineState.GONE
        machine.cancel_timer()
        machine.state = MachineState.GONE
        self._plane.kubelet.lose_node(machine.name)
        for entry in self._plane.scheduler.pods_on(machine.name):
            self._plane.pod_deletion.collect(entry)
        if was_planned:
            self._end(machine)
            return
        # Somebody deleted the Node object: the machine ends, and is billed, a removal time later.
        seconds = self._configs[machine.pool].remove_seconds / self._plane.time_speed
        machine.timer = self._plane.loop.call_later(seconds, self._end, machine)
        self._changed(machine.pool)

    def _end(self, machine: Machine) -> None:
        machine.state = MachineState.GONE
        self._machines.pop(machine.name, None)
        self._log("node_deleted", machine)
        self._changed(machine.pool)

    def _mark_pods_unready(self, node: str) -> None:
        pods = self._plane.store("pods")
        for entry in self._plane.scheduler.pods_on(node):
            unready = condition("Ready", "False", "NodeNotReady", "")
            stored = pods.put(entry.key, pod_with_condition(entry.obj, unready))
            self._plane.recorder.emit(stored.obj, "NodeNotReady", "Node is not ready", "node-controller", warning=True)

    def _log(self, kind: str, machine: Machine, **more: Any) -> None:
        if self._plane.event_log.enabled:
            self._plane.event_log.write(kind, **self.facts(machine), **more)
