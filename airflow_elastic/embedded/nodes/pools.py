"""Node pools: API objects whose ``spec.replicas`` is followed by launching and removing machines."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from airflow_elastic.embedded import timestamps
from airflow_elastic.embedded.config import NodePoolConfig
from airflow_elastic.embedded.http.status import invalid
from airflow_elastic.embedded.nodes.fleet import Fleet
from airflow_elastic.embedded.nodes.machine import Machine, MachineState
from airflow_elastic.embedded.nodes.objects import POOL_LABEL
from airflow_elastic.embedded.nodes.removal import removal_order
from airflow_elastic.embedded.registry.conditions import with_condition
from airflow_elastic.embedded.registry.writer import new_uid
from airflow_elastic.embedded.store.entry import Change
from airflow_elastic.embedded.types import Object

if TYPE_CHECKING:
    from airflow_elastic.embedded.plane import ControlPlane

__all__ = ["NODE_POOLS", "NodePools"]

NODE_POOLS = "nodepools.embedded.airflow-elastic.io"
_KIND = "NodePool"
_GROUP = "embedded.airflow-elastic.io"
_MUTABLE = ("replicas", "minNodes", "maxNodes", "stockOut")


class NodePools:
    """Keeps as many machines as each node pool asks for."""

    def __init__(self, plane: ControlPlane, rng: random.Random) -> None:
        self._plane = plane
        self._objects = plane.store(NODE_POOLS)
        self.configs: dict[str, NodePoolConfig] = {pool.name: pool for pool in plane.config.node_pools}
        self.fleet = Fleet(plane, self.configs, rng, self.changed)
        self._dirty: set[str] = set()
        self._flushing = False

    def start(self) -> None:
        """Make the pools' objects and their first nodes, which are Ready at once."""
        for config in self.configs.values():
            self._objects.put(("", config.name), _pool_object(config))
            for _ in range(config.starting_nodes):
                self.fleet.launch_ready(config)
            self._write_status(config.name)
        self._objects.listen(self._on_pool_change)

    def check_spec(self, new: Object, old: Object) -> None:
        """Check a changed node pool.

        Raises:
            ApiError: 422; replicas beyond the limits, or a field that cannot change.
        """
        name = new["metadata"]["name"]
        spec = new.get("spec") or {}
        fixed = {**old["spec"], **{key: spec[key] for key in _MUTABLE if key in spec}}
        if {**old["spec"], **spec} != fixed:
            changed = sorted(key for key in spec if key not in _MUTABLE and spec[key] != old["spec"].get(key))
            rule = f"Forbidden: field is immutable; only {', '.join(_MUTABLE)} may change"
            raise invalid(_KIND, _GROUP, name, [(f"spec.{changed[0]}", rule)])
        new["spec"] = fixed
        causes = [
            (f"spec.{field}", f"Invalid value: {fixed[field]!r}: must be a whole number, 0 or more")
            for field in ("replicas", "minNodes", "maxNodes")
            if isinstance(fixed[field], bool) or not isinstance(fixed[field], int) or fixed[field] < 0
        ]
        if not isinstance(fixed["stockOut"], bool):
            causes.append(("spec.stockOut", f"Invalid value: {fixed['stockOut']!r}: must be true or false"))
        if causes:
            raise invalid(_KIND, _GROUP, name, causes)
        low, high, replicas = fixed["minNodes"], fixed["maxNodes"], fixed["replicas"]
        if low > high:
            causes.append(("spec.minNodes", f"Invalid value: {low}: must be at most spec.maxNodes ({high})"))
        elif replicas > high:
            causes.append(("spec.replicas", f"Invalid value: {replicas}: must be at most spec.maxNodes ({high})"))
        elif replicas < low:
            causes.append(("spec.replicas", f"Invalid value: {replicas}: must be at least spec.minNodes ({low})"))
        if causes:
            raise invalid(_KIND, _GROUP, name, causes)

    def spec(self, pool: str) -> Object:
        """Return a pool's present spec."""
        entry = self._objects.get(("", pool))
        assert entry is not None, f"node pool {pool} is configured but has no object"
        spec: Object = entry.obj["spec"]
        return spec

    def scale(self, pool: str, replicas: int, user_agent: str) -> None:
        """Set a pool's replicas from inside the cluster (autoscaler); the caller respects the limits."""
        entry = self._objects.get(("", pool))
        assert entry is not None
        self._plane.user_agent = user_agent
        metadata = {**entry.obj["metadata"], "generation": entry.obj["metadata"]["generation"] + 1}
        spec = {**entry.obj["spec"], "replicas": replicas}
        self._objects.put(entry.key, {**entry.obj, "metadata": metadata, "spec": spec})

    def remove_one(self, machine: Machine, user_agent: str) -> None:
        """Remove one chosen machine and ask for one fewer."""
        self.fleet.remove(machine)
        self.scale(machine.pool, max(0, self.spec(machine.pool)["replicas"] - 1), user_agent)

    def changed(self, pool: str) -> None:
        """Look at a pool again soon: a machine of it has changed its state."""
        self._dirty.add(pool)
        if not self._flushing:
            self._flushing = True
            self._plane.loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        dirty, self._dirty = self._dirty, set()
        for pool in sorted(dirty):
            self._reconcile(pool)
            self._write_status(pool)

    def _on_pool_change(self, change: Change) -> None:
        if change.previous is None:
            return
        pool, spec, before = change.entry.key[1], change.entry.obj["spec"], change.previous.obj["spec"]
        if spec is before:
            return
        if spec["replicas"] != before["replicas"]:
            self._plane.event_log.write(
                "pool_scaled",
                pool=pool,
                **{"from": before["replicas"], "to": spec["replicas"]},
                user_agent=self._plane.user_agent,
            )
        self.changed(pool)

    def _reconcile(self, pool: str) -> None:
        config, spec = self.configs[pool], self.spec(pool)
        machines = [machine for machine in self.fleet.of_pool(pool) if machine.counted]
        surplus = len(machines) - spec["replicas"]
        if surplus > 0:
            for machine in removal_order(self._plane, machines)[:surplus]:
                self.fleet.remove(machine)
        elif not spec["stockOut"]:
            for _ in range(-surplus):
                self.fleet.launch(config)

    def _write_status(self, pool: str) -> None:
        entry = self._objects.get(("", pool))
        assert entry is not None
        machines = [machine for machine in self.fleet.of_pool(pool) if machine.counted]
        ready = sum(1 for machine in machines if machine.state is MachineState.READY)
        booting = sum(1 for machine in machines if machine.state in (MachineState.BOOTING, MachineState.REGISTERED))
        old = entry.obj["status"]
        short = max(0, entry.obj["spec"]["replicas"] - len(machines)) if entry.obj["spec"]["stockOut"] else 0
        status = {
            "replicas": len(machines),
            "readyReplicas": ready,
            "bootingReplicas": booting,
            "removingReplicas": len(self.fleet.of_pool(pool)) - len(machines),
            "selector": f"{POOL_LABEL}={pool}",
            "conditions": with_condition(old["conditions"], _capacity_condition(short)),
        }
        if status != old:
            self._objects.put(entry.key, {**entry.obj, "metadata": dict(entry.obj["metadata"]), "status": status})


def _capacity_condition(short: int) -> Object:
    made: Object = {
        "type": "InsufficientCapacity",
        "status": "True" if short else "False",
        "reason": "StockOut" if short else "CapacityAvailable",
        "message": f"the cloud has no machine of this kind now; {short} requested nodes wait" if short else "",
        "lastTransitionTime": timestamps.now(),
    }
    return made


def _pool_object(config: NodePoolConfig) -> Object:
    autoscaler = config.autoscaler
    return {
        "kind": _KIND,
        "apiVersion": f"{_GROUP}/v1",
        "metadata": {
            "name": config.name,
            "uid": new_uid(),
            "creationTimestamp": timestamps.now(),
            "generation": 1,
        },
        "spec": {
            "replicas": config.starting_nodes,
            "minNodes": config.min_nodes,
            "maxNodes": config.max_nodes,
            "stockOut": config.stock_out,
            "capacityType": config.capacity_type,
            "template": {
                "labels": dict(config.labels),
                "taints": [dict(taint) for taint in config.taints],
                "allocatable": {name: str(amount) for name, amount in config.allocatable.items()},
            },
            "bootSeconds": {"median": config.boot_seconds_median, "p95": config.slow_boot_seconds},
            "removeSeconds": config.remove_seconds,
            "autoscaler": None
            if autoscaler is None
            else {"scanSeconds": autoscaler.scan_seconds, "emptySeconds": autoscaler.empty_seconds},
        },
        "status": {
            "replicas": 0,
            "readyReplicas": 0,
            "bootingReplicas": 0,
            "removingReplicas": 0,
            "selector": f"{POOL_LABEL}={config.name}",
            "conditions": [],
        },
    }
