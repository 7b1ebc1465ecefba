"""A closed loop in simulated time, second by second: Airflow, Kubernetes and a node group around the planner.

As simple as can be and independent of the planner's own ideas: a scheduler that respects slots and the graph, pods that
bind where there is room, nodes that boot and leave. The provider has a number (``desired``), like a node group.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from itertools import pairwise

from planning_worlds import NOW, POD, SETTINGS, SHAPE

from airflow_elastic.model.demand import DagShape, Run, RunPhase, TaskInstance, TaskKey, TaskState
from airflow_elastic.model.plan import Plan, SetNodes, SetSlots
from airflow_elastic.model.reservation import Reservation
from airflow_elastic.model.settings import Settings
from airflow_elastic.model.snapshot import AirflowPool, Node, NodePoolState, PlannerMemory, Pod, PodPhase, Snapshot
from airflow_elastic.planning.planner import plan


@dataclass
class SimulatedNode:
    name: str
    created_at: float
    ready_at: float
    leaves_at: float | None = None


@dataclass
class SimulatedTask:
    state: TaskState = TaskState.NONE
    ready_at: float = 0.0
    bound_at: float | None = None
    node: str = ""
    ends_at: float = 0.0


@dataclass
class Loop:
    shape: DagShape
    starts: list[float]
    """When runs start, in seconds from the beginning."""
    settings: Settings = SETTINGS
    boot_seconds: tuple[float, float] = (20.0, 60.0)
    spread: float = 1.0
    """Real durations lie between the median and ``spread`` times it, either way."""
    seed: int = 0
    now: float = NOW
    nodes: dict[str, SimulatedNode] = field(default_factory=dict)
    runs: dict[str, dict[str, SimulatedTask]] = field(default_factory=dict)
    desired: int = 0
    slots: int = 0
    memory: PlannerMemory = field(default_factory=PlannerMemory)
    reservations: tuple[Reservation, ...] = ()
    orders: list[SetNodes] = field(default_factory=list)
    waits: list[tuple[str, str, float]] = field(default_factory=list)
    """(run, task, seconds from ready to bound)"""
    node_seconds: float = 0.0
    busy_seconds: float = 0.0
    phantom_seconds: float = 0.0
    last: Plan = field(default_factory=Plan)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.count = 0

    def run(self, seconds: float) -> Loop:
        for _ in range(int(seconds)):
            self.now += 1.0
            self._nodes()
            self._tasks()
            self.last = plan(self._snapshot())
            self._act(self.last)
            self.node_seconds += len(self.nodes)
            self.busy_seconds += len({t.node for tasks in self.runs.values() for t in tasks.values() if t.node})
        return self

    def _nodes(self) -> None:
        for node in list(self.nodes.values()):
            if node.leaves_at is not None and node.leaves_at <= self.now:
                del self.nodes[node.name]
        missing = self.desired - sum(node.leaves_at is None for node in self.nodes.values())
        for _ in range(max(missing, 0)):
            self.count += 1
            name = f"node{self.count}"
            self.nodes[name] = SimulatedNode(name, self.now, self.now + self.random.uniform(*self.boot_seconds))

    def _tasks(self) -> None:
        for start in self.starts:
            if NOW + start <= self.now:
                tasks = {spec.task_id: SimulatedTask() for spec in self.shape.tasks}
                self.runs.setdefault(f"run{start:.0f}", tasks)
        started = 0
        for run_id, tasks in self.runs.items():
            for spec in self.shape.tasks:
                task = tasks[spec.task_id]
                if task.state is TaskState.DEFERRED and task.node and task.ends_at <= self.now:
                    task.state, task.node = TaskState.SUCCESS, ""
                if task.state is TaskState.NONE and all(tasks[up].state is TaskState.SUCCESS for up in spec.upstream):
                    task.state, task.ready_at = TaskState.SCHEDULED, self.now
                started += task.state is TaskState.DEFERRED
            for spec in self.shape.tasks:
                task = tasks[spec.task_id]
                if task.state is TaskState.SCHEDULED and started < self.slots:
                    task.state = TaskState.DEFERRED
                    started += 1
                if task.state is TaskState.DEFERRED and not task.node:
                    self._bind(run_id, spec.task_id, task, spec.duration.q50_seconds)

    def _bind(self, run_id: str, task_id: str, task: SimulatedTask, seconds: float) -> None:
        load: dict[str, int] = dict.fromkeys(self._usable(), 0)
        for tasks in self.runs.values():
            for other in tasks.values():
                if other.node in load:
                    load[other.node] += 1
        free = [name for name, pods in load.items() if pods < 4]
        if free:
            task.node = min(free, key=lambda name: load[name])  # spread, as kube-scheduler does
            task.bound_at = self.now
            factor = self.random.uniform(1 / self.spread, self.spread)
            task.ends_at = self.now + seconds * factor
            self.waits.append((run_id, task_id, self.now - task.ready_at))

    def _usable(self) -> list[str]:
        return [n.name for n in self.nodes.values() if n.ready_at <= self.now and n.leaves_at is None]

    def _snapshot(self) -> Snapshot:
        usable = set(self._usable())
        nodes = tuple(
            Node(n.name, "elastic", SHAPE, n.name in usable, created_at=n.created_at,
                 is_booting=n.ready_at > self.now and n.leaves_at is None, is_releasing=n.leaves_at is not None)
            for n in self.nodes.values()
        )  # fmt: skip
        pods, runs = [], []
        for run_id, tasks in self.runs.items():
            for task_id, task in tasks.items():
                if task.state is TaskState.DEFERRED:
                    phase = PodPhase.RUNNING if task.node else PodPhase.PENDING
                    owner = TaskKey(self.shape.dag_id, run_id, task_id)
                    pods.append(Pod(f"{run_id}-{task_id}", "default", POD, phase, task.node, owner, "burst",
                                    started_at=task.bound_at))  # fmt: skip
            if any(not task.state.is_finished for task in tasks.values()):
                instances = tuple(TaskInstance(task_id, state=task.state) for task_id, task in tasks.items())
                begun = NOW + float(run_id[3:])
                runs.append(Run(self.shape.dag_id, run_id, RunPhase.ACTIVE, begun, self.shape, instances))
        runs += [
            Run(self.shape.dag_id, f"run{start:.0f}", RunPhase.COMING, NOW + start, self.shape)
            for start in self.starts
            if NOW + start > self.now
        ]
        deferred = sum(pod is not None for pod in pods)
        scheduled = sum(t.state is TaskState.SCHEDULED for tasks in self.runs.values() for t in tasks.values())
        pool = AirflowPool("burst", self.slots, deferred=deferred, scheduled=scheduled)
        standing = sum(n.leaves_at is None for n in self.nodes.values())
        state = NodePoolState("elastic", self.desired, max(self.desired - standing, 0))
        return Snapshot(self.now, self.settings, nodes, tuple(pods), (pool, AirflowPool("core", 0)), tuple(runs),
                        (state,), self.reservations, memory=self.memory)  # fmt: skip

    def _act(self, made: Plan) -> None:
        for action in made.actions:
            if isinstance(action, SetSlots):
                self.slots = action.slots if action.airflow_pool == "burst" else self.slots
            else:
                self.orders.append(action)
                self.desired = action.nodes
                for name in action.release:
                    node = self.nodes[name]
                    assert not any(t.node == name for tasks in self.runs.values() for t in tasks.values()), name
                    node.leaves_at = self.now + 3.0
        self.memory, self.reservations = made.memory, made.reservations
        self.phantom_seconds += max(self.slots - 4 * len(self._usable()), 0)

    @property
    def flips(self) -> int:
        """How often the direction of the orders changed."""
        directions = [order.is_out for order in self.orders]
        return sum(a is not b for a, b in pairwise(directions))


def with_cooldown(seconds: float) -> Settings:
    return replace(SETTINGS, scaling=replace(SETTINGS.scaling, scale_in_cooldown_seconds=seconds))
