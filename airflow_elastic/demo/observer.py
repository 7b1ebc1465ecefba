"""Looks at a running stack from outside: event log, samples, Airflow's tables. Feeds the live view and the report."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass

from airflow_elastic.demo import airflow_tables
from airflow_elastic.demo.cluster_history import ClusterHistory, EventLogTail
from airflow_elastic.demo.measurement import Measurement, RunRow, classes_of, minimum_nodes
from airflow_elastic.demo.report import usable_slots_at
from airflow_elastic.demo.sampler import Sampler
from airflow_elastic.demo.stack import Stack

__all__ = ["NodeCounts", "Observer", "PoolSlots"]


@dataclass(frozen=True, slots=True)
class NodeCounts:
    """A node pool now."""

    pool: str
    usable: int
    booting: int
    other: int
    """Cordoned, lost or going."""
    placeholders: int
    min_nodes: int
    reserved: int

    @property
    def billed(self) -> int:
        """Return the nodes that are paid for."""
        return self.usable + self.booting + self.other


@dataclass(frozen=True, slots=True)
class PoolSlots:
    """An Airflow pool now."""

    pool: str
    slots: int | None
    usable: int


class Observer:
    """Call ``refresh`` every now and then; the properties show the state of the last one."""

    def __init__(self, stack: Stack) -> None:
        self._database = stack.database()
        self._tail = EventLogTail(stack.event_log)
        self._is_managed = stack.variant.controller != "off"
        self.started_at = time.time()
        self.history = ClusterHistory()
        self.sampler = Sampler(stack.database(), stack.home / "samples.jsonl")
        self.classes = classes_of(stack.variant.capacity)
        self.min_nodes = minimum_nodes(stack.variant.capacity)
        self.runs: list[RunRow] = []
        self.states: dict[tuple[str, str], dict[str, int]] = {}
        self.decisions: list[tuple[float, str, str, str]] = []

    def start(self) -> None:
        """Begin to sample."""
        self.sampler.start()

    def stop(self) -> None:
        """Stop sampling and close the connections."""
        self.sampler.stop()
        self._database.close()

    def refresh(self, *, decisions: int = 0) -> None:
        """Read what has happened since the last call.

        Raises:
            TemporaryError: the metadata DB does not answer.
        """
        for event in self._tail.read():
            self.history.add(event)
        self.runs = airflow_tables.runs(self._database)
        self.states = airflow_tables.task_states(self._database)
        if decisions and self._is_managed:
            self.decisions = airflow_tables.decisions(self._database, decisions)

    def controller_has_published(self) -> bool:
        """Tell whether the controller has published a status."""
        return airflow_tables.has_status(self._database)

    def finished_runs(self) -> Counter[str]:
        """Return dag_id → number of scheduled runs that have ended."""
        return Counter(run.dag_id for run in self.runs if run.run_type == "scheduled" and run.is_finished)

    def node_counts(self) -> list[NodeCounts]:
        """Return the node pools now, as the cluster's own log has them."""
        now = time.time()
        reserved = self.sampler.reserved[-1][1] if self.sampler.reserved else {}
        placeholders = Counter(
            self.history.nodes[pod.node].pool
            for pod in self.history.pods.values()
            if pod.is_placeholder and pod.gone_at > now and pod.node in self.history.nodes
        )
        counts = []
        for pool, minimum in self.min_nodes.items():
            nodes = [node for node in self.history.nodes.values() if node.pool == pool and node.ended_at > now]
            usable = sum(bool(node.usable) and node.usable[-1][1] > now for node in nodes)
            booting = sum(node.ready_at is None for node in nodes)
            other = len(nodes) - usable - booting
            counts.append(NodeCounts(pool, usable, booting, other, placeholders[pool], minimum, reserved.get(pool, 0)))
        return counts

    def pool_slots(self) -> list[PoolSlots]:
        """Return the classes' Airflow pools now."""
        slots = self.sampler.slots[-1][1] if self.sampler.slots else {}
        now = time.time()
        return [
            PoolSlots(each.airflow_pool, slots.get(each.airflow_pool), usable_slots_at(self.history, each, now))
            for each in self.classes
        ]

    def at_rest(self) -> bool:
        """Tell whether every node pool is at its minimum and no placeholder is left; where a controller keeps slots,
        also whether they equal the usable ones.
        """
        now = time.time()
        return (
            all(each.billed == each.min_nodes for each in self.node_counts())
            and not any(pod.is_placeholder and pod.gone_at > now for pod in self.history.pods.values())
            and (not self._is_managed or all(each.slots in (None, each.usable) for each in self.pool_slots()))
        )

    def measurement(self) -> Measurement:
        """Return what the reporter works from, as of the last refresh."""
        return Measurement(
            history=self.history,
            started_at=self.started_at,
            ended_at=time.time(),
            classes=self.classes,
            min_nodes=self.min_nodes,
            slot_samples=tuple(self.sampler.slots),
            reserved_samples=tuple(self.sampler.reserved),
            runs=self.runs,
            tasks=airflow_tables.tasks(self._database),
            first_tasks=airflow_tables.first_tasks(self._database),
        )
