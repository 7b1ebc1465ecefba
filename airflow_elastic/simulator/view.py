"""The simulated world as the planner's snapshot: models are made anew only for what changed."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_elastic.controller.learning import Learner
from airflow_elastic.model.demand import (
    DagShape,
    DurationEstimate,
    Run,
    RunPhase,
    TaskInstance,
    TaskKey,
    TaskSpec,
    TaskState,
)
from airflow_elastic.model.snapshot import AirflowPool, Node, NodePoolState, Pod, PodPhase
from airflow_elastic.planning.vectors import one_pod
from airflow_elastic.simulator.airflow import SimRun
from airflow_elastic.simulator.cluster import SimNode, SimPod, SimPool
from airflow_elastic.simulator.distortion import Distortion
from airflow_elastic.simulator.workload import DagTemplate, PlannedRun, TaskTemplate
from airflow_elastic.simulator.world import World

__all__ = ["PlannerView"]


@dataclass(slots=True)
class _SeenRun:
    """A run as it was shown last."""

    instances: list[TaskInstance]
    model: Run
    mapped: dict[str, list[int]]
    """Indices of the instances of each mapped task."""


@dataclass(slots=True)
class _Announced:
    """A coming run that the planner knows of."""

    starts_at: float
    model: Run
    planned: PlannedRun


class PlannerView:
    """Shows a world to the planner: what the metadata database, the watches and the provider would show."""

    def __init__(self, world: World, learner: Learner, distortion: Distortion, *, perfect: bool) -> None:
        self.world = world
        self.learner = learner
        self.distortion = distortion
        self.perfect = perfect
        self.announced: list[_Announced] = []
        self._upcoming = sorted(world.workload.test, key=lambda run: -run.starts_at)
        self._seen: dict[int, _SeenRun] = {}
        self._shapes: dict[str | PlannedRun, DagShape] = {}
        self._pods: dict[SimPod, Pod] = {}
        self._nodes: dict[SimNode, Node] = {}

    def nodes(self) -> tuple[Node, ...]:
        """Return the usable nodes; machines that boot are no nodes yet."""
        return tuple(self._node(node) for pool in self.world.cluster.pools.values() for node in pool.nodes)

    def _node(self, node: SimNode) -> Node:
        known = self._nodes.get(node)
        if known is None:
            shape, name = node.pool.pool.shape, node.pool.name
            known = Node(node.name, name, shape, True, created_at=node.asked_at, usable_since=node.usable_at)
            if len(self._nodes) > 10_000:
                self._nodes.clear()
            self._nodes[node] = known
        return known

    def states(self) -> tuple[NodePoolState, ...]:
        """Return what the providers say."""
        return tuple(self._state(pool) for pool in self.world.cluster.pools.values())

    def _state(self, pool: SimPool) -> NodePoolState:
        until = pool.truth.stock_out_until(self.world.now) if pool.coming else None
        return NodePoolState(
            pool.name,
            desired_nodes=pool.size,
            coming_nodes=len(pool.coming),
            coming_since=pool.coming[0].asked_at if pool.coming else None,
            failure="" if until is None else "the cloud has no such machine now (simulated stock-out)",
        )

    def airflow_pools(self) -> tuple[AirflowPool, ...]:
        """Return Airflow's pools."""
        return tuple(
            AirflowPool(
                each.name,
                -1 if each.slots is None else each.slots,
                running=each.running,
                queued=each.queued,
                deferred=each.deferred,
                scheduled=each.scheduled,
            )
            for each in self.world.airflow.pools.values()
        )

    def pods(self) -> tuple[Pod, ...]:
        """Return the pods that exist."""
        if len(self._pods) > 2 * len(self.world.live_pods) + 100:
            self._pods = {pod: known for pod, known in self._pods.items() if pod in self.world.live_pods}
        return tuple(self._pod(pod) for pod in self.world.live_pods)

    def _pod(self, pod: SimPod) -> Pod:
        known = self._pods.get(pod)
        ended = pod.node is not None and pod not in pod.node.pods
        phase = PodPhase.SUCCEEDED if ended else PodPhase.RUNNING if pod.node else PodPhase.PENDING
        if known is None or known.phase is not phase:
            task = self.world.live_pods[pod]
            run, template = task.run.planned, task.run.planned.dag.tasks[task.index]
            known = self._pods[pod] = Pod(
                name=pod.name,
                namespace="default",
                requests=pod.requests,
                phase=phase,
                node=pod.node.name if pod.node else "",
                owner=TaskKey(run.dag.dag_id, run.run_id, template.task_id, template.map_index),
                capacity_class=self.class_name(template),
                created_at=pod.created_at,
                started_at=pod.started_at,
                unschedulable_since=None if pod.node else pod.created_at,
            )
        return known

    def class_name(self, template: TaskTemplate) -> str:
        """Return the name of a task's class."""
        each = self.world.class_of(template.capacity_class)
        return each.name if each else template.capacity_class

    def runs(self) -> tuple[Run, ...]:
        """Return active runs and those that come within the horizon."""
        world = self.world
        runs = [self._active(run) for run in world.airflow.active.values()]
        if len(self._seen) > 2 * len(world.airflow.active) + 8:
            self._seen = {number: self._seen[number] for number in world.airflow.active}
        horizon = world.now + world.settings.scaling.horizon_seconds
        while self._upcoming and self._upcoming[-1].starts_at <= horizon:
            planned = self._upcoming.pop()
            if planned.is_scheduled:
                at = self.distortion.start(planned, world.workload.starts_at, world.conditions.seed)
                model = Run(planned.dag.dag_id, planned.run_id, RunPhase.COMING, at, self._shape(planned))
                self.announced.append(_Announced(planned.starts_at, model, planned))
        self.announced = [each for each in self.announced if each.starts_at > world.now]
        for each in self.announced:
            shape, model = self._shape(each.planned), each.model
            if model.shape is not shape:
                each.model = Run(model.dag_id, model.run_id, RunPhase.COMING, model.starts_at, shape)
            runs.append(each.model)
        return tuple(runs)

    def _active(self, run: SimRun) -> Run:
        seen = self._seen.get(run.number)
        if seen is not None and not run.dirty:
            return seen.model
        dag = run.planned.dag
        if seen is None:
            if not self.perfect:
                self._shapes.pop(dag.dag_id, None)  # a new run sees what was learnt since the one before
            shape = self._shape(run.planned)
            instances = [TaskInstance(task.task_id, task.map_index) for task in dag.tasks]
            mapped: dict[str, list[int]] = {}
            for i, task in enumerate(dag.tasks):
                if task.map_index >= 0:
                    mapped.setdefault(task.task_id, []).append(i)
        else:
            shape, instances, mapped = seen.model.shape, seen.instances, seen.mapped
        for i in run.dirty:
            instance, template = run.tasks[i], dag.tasks[i]
            instances[i] = TaskInstance(
                template.task_id,
                template.map_index,
                state=instance.state,
                try_number=0 if instance.state is TaskState.NONE else 1,
                started_at=instance.created_at,
                ready_at=instance.ready_at or None,
            )
        run.dirty.clear()
        starts_at = run.started_at if run.phase is RunPhase.ACTIVE else run.planned.starts_at
        shown = tuple(self._unexpanded(instances, mapped)) if mapped else tuple(instances)
        model = Run(dag.dag_id, run.planned.run_id, run.phase, starts_at, shape, shown)
        self._seen[run.number] = _SeenRun(instances, model, mapped)
        return model

    @staticmethod
    def _unexpanded(instances: list[TaskInstance], mapped: dict[str, list[int]]) -> list[TaskInstance]:
        """Show a mapped task whose upstream has not ended as Airflow does: one instance without an index."""
        hidden: set[int] = set()
        shown: list[TaskInstance] = []
        for task_id, indices in mapped.items():
            if all(instances[i].state is TaskState.NONE for i in indices):
                hidden.update(indices)
                shown.append(TaskInstance(task_id))
        return [each for i, each in enumerate(instances) if i not in hidden] + shown

    def _shape(self, planned: PlannedRun) -> DagShape:
        key = planned if self.perfect else planned.dag.dag_id
        known = self._shapes.get(key)
        if known is None:
            known = self._shapes[key] = self._make_shape(planned)
        return known

    def _make_shape(self, planned: PlannedRun) -> DagShape:
        dag = planned.dag
        specs: dict[str, TaskSpec] = {}
        for i, task in enumerate(dag.tasks):
            if task.task_id not in specs:
                specs[task.task_id] = self._spec(dag, task, planned.seconds[i])
        limit = dag.max_active_tasks or len(dag.tasks)
        return DagShape(dag.dag_id, tuple(specs.values()), limit, dag.max_active_runs)

    def _spec(self, dag: DagTemplate, task: TaskTemplate, seconds: float) -> TaskSpec:
        each, name, profiles = self.world.class_of(task.capacity_class), self.class_name(task), self.learner.profiles
        if self.perfect:
            duration = DurationEstimate(seconds, seconds, seconds, 1)
        else:
            estimate = profiles.estimate(dag.dag_id, task.task_id, name)
            duration = self.distortion.duration(estimate, task.task_id)
        is_mapped = task.map_index >= 0
        return TaskSpec(
            task_id=task.task_id,
            upstream=tuple(dict.fromkeys(dag.tasks[up].task_id for up in task.upstream)),
            needs_node=True,
            capacity_class=name,
            requests=one_pod(task.requests),
            is_mapped=is_mapped,
            mapped_width=profiles.width(dag.dag_id, task.task_id) if is_mapped else 1,
            pool=each.airflow_pool if each else "default_pool",
            pool_slots=task.requests.slots_of(each.slot_shape) if each else 1,
            duration=duration,
            holds_worker=dag.max_active_tasks > 0,
        )
