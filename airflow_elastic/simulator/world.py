"""One simulated installation: Airflow above, node pools below, a policy that brings and removes nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from airflow_elastic.model.capacity_class import CapacityClass
from airflow_elastic.model.resources import PODS, Resources
from airflow_elastic.model.settings import Settings
from airflow_elastic.planning.vectors import one_pod
from airflow_elastic.simulator.airflow import SimAirflow, SimAirflowPool, SimTask
from airflow_elastic.simulator.cluster import Cluster, PoolTruth, SimPod, SimPool
from airflow_elastic.simulator.engine import Engine
from airflow_elastic.simulator.workload import Workload

__all__ = ["Conditions", "Policy", "World", "truth_of"]


@dataclass(frozen=True, slots=True)
class Conditions:
    """How the simulated world behaves, the same for every policy."""

    seed: int = 0
    start_seconds: float = 2.0
    """From a slot's grant to the task's pod."""
    finish_seconds: float = 1.0
    """From the pod's end to the task's success."""
    lead_in_seconds: float = 3600.0
    """Simulated before the first measured run, so that a policy may prepare for it; billed like the rest."""
    packing: bool = True
    """Pods go to the fullest node that holds them; False: to the emptiest (kube-scheduler's default)."""
    cold_seconds: float = 10.0
    """A task that waited longer than this for capacity counts as cold."""
    truths: Mapping[str, PoolTruth] = field(default_factory=dict)
    """How node pools really behave; one that is not named does what the settings say."""


class Policy(Protocol):
    """Decides about nodes (and slots) of a world."""

    name: str

    def begin(self, world: World) -> None:
        """Prepare; called once, before anything happens."""

    def changed(self) -> None:
        """React; called after every moment in which anything of Airflow, pods or nodes changed."""


def truth_of(settings: Settings, name: str) -> PoolTruth:
    """Return the truth about a pool when it does what the settings say."""
    pool = settings.node_pool(name)
    return PoolTruth(pool.boot_seconds, pool.boot_seconds_p95) if pool else PoolTruth(60.0, 120.0)


class World:
    """Wires engine, Airflow and cluster together."""

    def __init__(self, workload: Workload, settings: Settings, conditions: Conditions, *, gates: bool) -> None:
        self.workload = workload
        self.settings = settings
        self.conditions = conditions
        self.engine = Engine(workload.starts_at - conditions.lead_in_seconds)
        names = sorted(
            {PODS}
            | {name for dag in workload.dags for task in dag.tasks for name in task.requests.names}
            | {name for each in settings.classes for name in each.slot_shape.names}
        )
        pools = [
            SimPool(pool, conditions.truths.get(pool.name) or truth_of(settings, pool.name), names, conditions.seed)
            for pool in settings.node_pools
        ]
        self.cluster = Cluster(self.engine, pools, names, self._pod_started, self._pod_lost, packing=conditions.packing)
        airflow_pools = {
            each.airflow_pool: SimAirflowPool(each.airflow_pool, 0 if gates else None) for each in settings.classes
        }
        self._classes: dict[str, CapacityClass | None] = {}
        self._placing: dict[tuple[str, Resources], tuple[Resources, tuple[int, ...], tuple[SimPool, ...]]] = {}
        self.airflow = SimAirflow(
            self.engine,
            workload.test,
            airflow_pools,
            self._slots_of,
            self._start,
            self._finished,
            start_seconds=conditions.start_seconds,
            finish_seconds=conditions.finish_seconds,
        )
        self.on_pod_ended: Callable[[SimTask, SimPod], None] = lambda task, pod: None
        """For a policy that learns: a task's pod has succeeded."""
        self.live_pods: dict[SimPod, SimTask] = {}
        """Pods that exist, those included that have ended and whose task is not closed yet."""

    @property
    def now(self) -> float:
        """Return the simulated time."""
        return self.engine.now

    def run(self, policy: Policy, progress: Callable[[float], None] | None = None) -> None:
        """Let the policy run the world until every run has ended and the measured days are over.

        ``progress`` is told the share that is done, now and then.
        """
        engine, begin, end = self.engine, self.engine.now, self.workload.ends_at
        engine.at(end, lambda: None)
        policy.begin(self)
        shown = begin
        while (self.airflow.left or engine.now < end) and engine.run_moment():
            if self.airflow.changed or self.cluster.changed:
                self.airflow.changed = self.cluster.changed = False
                policy.changed()
            if progress is not None and engine.now - shown > (end - begin) / 200:
                shown = engine.now
                progress(min((shown - begin) / (end - begin), 1.0))

    def set_slots(self, airflow_pool: str, slots: int) -> None:
        """Write an Airflow pool's slots."""
        pool = self.airflow.pools.get(airflow_pool)
        if pool is not None:
            pool.slots = slots
            self.airflow.changed = True
            self.airflow.grant()

    def class_of(self, name: str) -> CapacityClass | None:
        """Return a class of the settings, the default one for an unnamed or unknown class."""
        if name not in self._classes:
            self._classes[name] = self.settings.capacity_class(name) or self.settings.capacity_class("")
        return self._classes[name]

    def _slots_of(self, name: str, requests: Resources) -> tuple[str, int]:
        each = self.class_of(name)
        return (each.airflow_pool, requests.slots_of(each.slot_shape)) if each else ("default_pool", 1)

    def _start(self, task: SimTask) -> None:
        template = task.run.planned.dag.tasks[task.index]
        key = (template.capacity_class, template.requests)
        known = self._placing.get(key)
        if known is None:
            requests, each = one_pod(template.requests), self.class_of(template.capacity_class)
            amounts = tuple(requests.get(name) for name in self.cluster.names)
            pools = tuple(self.cluster.pools[name] for name in (each.node_pools if each else ()))
            known = self._placing[key] = (requests, amounts, pools)
        run = task.run
        name = f"{run.number}-{task.index}-{task.tries}"
        pod = SimPod(name, task, known[0], known[1], known[2], self.now)
        task.pod = pod
        self.live_pods[pod] = task
        self.cluster.create(pod)

    def _pod_started(self, pod: SimPod) -> None:
        task = self.live_pods[pod]
        self.airflow.pod_runs(task)
        self.engine.at(self.now + task.run.planned.seconds[task.index], self._pod_ended, pod)

    def _pod_ended(self, pod: SimPod) -> None:
        if pod.node is None:
            return  # lost with its node meanwhile
        task = self.live_pods[pod]
        self.cluster.end(pod)
        self.on_pod_ended(task, pod)
        self.airflow.pod_ended(task)

    def _pod_lost(self, pod: SimPod) -> None:
        task = self.live_pods.pop(pod)
        task.lost_seconds += self.now - (pod.started_at or self.now)
        task.pod = None
        self.airflow.pod_lost(task)

    def _finished(self, task: SimTask) -> None:
        if isinstance(task.pod, SimPod):
            self.live_pods.pop(task.pod, None)
            task.pod = None
