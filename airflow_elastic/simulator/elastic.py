"""The policy ``elastic``: the production planner, unchanged, driven as the controller drives it.

Each tick builds a snapshot of the simulated world, calls ``planning.planner.plan`` and does what it says. Decisions:
- A tick follows every change, ``tick_seconds`` after the one before at the soonest. While anything runs or stands there
  is one every ``idle_tick_seconds`` even if nothing changes, because expectations of running tasks move with time; and
  one at the next moment that the plan itself names (a reservation's or forecast's time to ask). Otherwise the world sleeps.
- Nodes are set as the provider ``scale`` does: the named nodes go if no pod has come meanwhile, then the number is set;
  less than is coming takes back the latest requests.
- The structure of a DAG (with its estimates) is read anew when a run of it is created or ends, not at every task's end.
- Profiles begin with what the training days showed: running times of all tasks and ``boots_seen`` boots.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from airflow_elastic.controller.learning import Learner
from airflow_elastic.kubernetes.cluster import NodeArrival
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
from airflow_elastic.model.plan import Plan, SetNodes, SetSlots
from airflow_elastic.model.reservation import Reservation, ReservationState
from airflow_elastic.model.snapshot import AirflowPool, Node, NodePoolState, PlannerMemory, Pod, PodPhase, Snapshot
from airflow_elastic.planning.planner import plan
from airflow_elastic.planning.vectors import one_pod
from airflow_elastic.simulator.airflow import SimRun
from airflow_elastic.simulator.cluster import SimNode, SimPod, SimPool
from airflow_elastic.simulator.distortion import TRUE_FORECAST, Distortion
from airflow_elastic.simulator.workload import DagTemplate, PlannedRun
from airflow_elastic.simulator.world import World

__all__ = ["Elastic"]


@dataclass(slots=True)
class _SeenRun:
    """A run as the planner saw it last."""

    instances: list[TaskInstance]
    model: Run


class Elastic:
    """Drives a world by the production planner."""

    def __init__(
        self,
        name: str = "elastic",
        *,
        tick_seconds: float = 1.0,
        idle_tick_seconds: float = 10.0,
        perfect: bool = False,
        distortion: Distortion = TRUE_FORECAST,
        boots_seen: int = 50,
        on_plan: Callable[[Snapshot, Plan], None] | None = None,
    ) -> None:
        """Make the policy.

        ``perfect``: the planner is told the true length of every task; ``distortion``: how its forecasts are made wrong.
        """
        self.name = name
        self.tick_seconds = tick_seconds
        self.idle_tick_seconds = idle_tick_seconds
        self.perfect = perfect
        self.distortion = distortion
        self.boots_seen = boots_seen
        self.on_plan = on_plan
        self.plans = 0
        self.world: World
        self._last_tick = float("-inf")
        self._next_tick = float("inf")
        self._reservations: tuple[Reservation, ...] = ()
        self._memory = PlannerMemory()
        self._seen: dict[int, _SeenRun] = {}
        self._shapes: dict[DagTemplate | PlannedRun, DagShape] = {}
        self._pods: dict[SimPod, Pod] = {}
        self._nodes: dict[SimNode, Node] = {}
        self._coming: list[tuple[float, Run, PlannedRun]] = []

    def begin(self, world: World) -> None:
        """Learn from the training days and make the first plan."""
        self.world = world
        self.learner = Learner(world.settings.scaling.default_task_seconds)
        self._train()
        world.on_pod_ended = self._learn
        self._upcoming = sorted(world.workload.test, key=lambda run: run.starts_at)
        self._wake(world.now)

    def changed(self) -> None:
        """Plan soon."""
        self._wake(self._last_tick + self.tick_seconds)

    # learning

    def _class_name(self, name: str) -> str:
        each = self.world.class_of(name)
        return each.name if each else name

    def _train(self) -> None:
        profiles = self.learner.profiles
        ends = []
        for run in self.world.workload.training:
            for task, seconds in zip(run.dag.tasks, run.seconds, strict=True):
                ends.append((run.starts_at + seconds, run.dag.dag_id, task.task_id, task.capacity_class, seconds))
        for at, dag_id, task_id, name, seconds in sorted(ends):
            profiles.observe(dag_id, task_id, self._class_name(name), seconds, at)
        for pool in self.world.cluster.pools.values():
            random = Random(f"{self.world.conditions.seed} training boots {pool.name}")
            for _ in range(self.boots_seen):
                profiles.observe_boot(pool.name, pool.truth.boot_draw(random))

    def _learn(self, task: object, pod: SimPod) -> None:
        run: SimRun = task.run  # type: ignore[attr-defined]
        template = run.planned.dag.tasks[task.index]  # type: ignore[attr-defined]
        seconds = self.world.now - (pod.started_at or self.world.now)
        self.learner.profiles.observe(
            run.planned.dag.dag_id, template.task_id, self._class_name(template.capacity_class), seconds, self.world.now
        )

    # time

    def _wake(self, at: float) -> None:
        at = max(at, self.world.now)
        if at < self._next_tick:
            self._next_tick = at
            self.world.engine.at(at, self._tick_at, at)

    def _tick_at(self, at: float) -> None:
        if at != self._next_tick:
            return  # an earlier one was asked for later
        self._next_tick = float("inf")
        self._tick()

    def _tick(self) -> None:
        now = self._last_tick = self.world.now
        snapshot = self._snapshot()
        result = plan(snapshot)
        self.plans += 1
        self._reservations, self._memory = result.reservations, result.memory
        for action in result.actions:
            if isinstance(action, SetSlots):
                self.world.set_slots(action.airflow_pool, action.slots)
            else:
                self._set_nodes(action)
        if self.on_plan is not None:
            self.on_plan(snapshot, result)
        self._wake(self._next_moment(snapshot, result, now))

    def _next_moment(self, snapshot: Snapshot, result: Plan, now: float) -> float:
        soonest = now + self.tick_seconds
        moments = [each.ask_at for each in result.reservations if each.state is ReservationState.PLANNED]
        moments += [each.ask_at for each in result.runs]
        moments += [at - 60.0 for at, _, _ in self._coming[-1:]]
        leads = {each.node_pool: each for each in result.node_pools}
        for name, forecast in leads.items():
            pool = self.world.cluster.pools[name]
            lead = next((each.needed_at - each.ask_at for each in result.runs if each.node_pool == name), None)
            if lead is not None:
                moments += [at - lead for at, nodes in forecast.steps if nodes > pool.size]
        cooldown = snapshot.settings.scaling.scale_in_cooldown_seconds
        moments += [at + cooldown for _, at in result.memory.last_scale_out_at]
        later = [at for at in moments if at > now]
        if any(pool.size for pool in self.world.cluster.pools.values()) or self.world.airflow.active:
            later.append(now + self.idle_tick_seconds)
        later.append(now + 3600.0)
        return max(min(later), soonest)

    # the world as a snapshot

    def _snapshot(self) -> Snapshot:
        world = self.world
        for node in world.cluster.arrivals:
            self.learner.arrivals([NodeArrival(node.name, node.pool.name, node.asked_at, world.now)])
        world.cluster.arrivals.clear()
        pools = world.cluster.pools.values()
        return Snapshot(
            now=world.now,
            settings=world.settings,
            nodes=tuple(self._node(node) for pool in pools for node in pool.nodes),
            pods=tuple(self._pod(pod) for pod in world.live_pods),
            airflow_pools=tuple(
                AirflowPool(
                    each.name,
                    -1 if each.slots is None else each.slots,
                    queued=each.queued,
                    deferred=each.deferred,
                    scheduled=each.scheduled,
                )
                for each in world.airflow.pools.values()
            ),
            runs=self._runs(),
            node_pool_states=tuple(self._state(pool) for pool in pools),
            reservations=self._reservations,
            boot=self.learner.boots(world.settings),
            memory=self._memory,
        )

    def _node(self, node: SimNode) -> Node:
        known = self._nodes.get(node)
        if known is None:
            known = self._nodes[node] = Node(
                node.name, node.pool.name, node.pool.pool.shape, True, created_at=node.asked_at,
                usable_since=node.usable_at,
            )  # fmt: skip
        return known

    def _state(self, pool: SimPool) -> NodePoolState:
        until = pool.truth.stock_out_until(self.world.now) if pool.coming else None
        return NodePoolState(
            pool.name,
            desired_nodes=pool.size,
            coming_nodes=len(pool.coming),
            coming_since=pool.coming[0].asked_at if pool.coming else None,
            failure="" if until is None else "the cloud has no such machine now (simulated stock-out)",
        )

    def _pod(self, pod: SimPod) -> Pod:
        known = self._pods.get(pod)
        task = self.world.live_pods[pod]
        ended = pod.node is not None and pod not in pod.node.pods
        phase = PodPhase.SUCCEEDED if ended else PodPhase.RUNNING if pod.node else PodPhase.PENDING
        if known is None or known.phase is not phase:
            template = task.run.planned.dag.tasks[task.index]
            known = self._pods[pod] = Pod(
                name=pod.name,
                namespace="default",
                requests=pod.requests,
                phase=phase,
                node=pod.node.name if pod.node else "",
                owner=TaskKey(task.run.planned.dag.dag_id, task.run.planned.run_id, template.task_id),
                capacity_class=self._class_name(template.capacity_class),
                created_at=pod.created_at,
                started_at=pod.started_at,
                unschedulable_since=None if pod.node else pod.created_at,
            )
        return known

    def _runs(self) -> tuple[Run, ...]:
        world = self.world
        runs = [self._active(run) for run in world.airflow.active.values()]
        if len(self._seen) > 2 * len(world.airflow.active) + 8:
            self._seen = {number: self._seen[number] for number in world.airflow.active}
        if len(self._pods) > 2 * len(world.live_pods) + 100:
            self._pods = {pod: known for pod, known in self._pods.items() if pod in world.live_pods}
        horizon = world.now + world.settings.scaling.horizon_seconds
        while self._upcoming and self._upcoming[0].starts_at <= horizon:
            planned = self._upcoming.pop(0)
            if planned.is_scheduled:
                seen_at = self.distortion.start(planned, world.workload.starts_at, world.conditions.seed)
                model = Run(planned.dag.dag_id, planned.run_id, RunPhase.COMING, seen_at, self._shape(planned))
                self._coming.append((planned.starts_at, model, planned))
        self._coming = [each for each in self._coming if each[0] > world.now]
        for i, (at, model, planned) in enumerate(self._coming):
            shape = self._shape(planned)
            if model.shape is not shape:
                model = Run(model.dag_id, model.run_id, RunPhase.COMING, model.starts_at, shape)
                self._coming[i] = (at, model, planned)
            runs.append(model)
        return tuple(runs)

    def _active(self, run: SimRun) -> Run:
        seen = self._seen.get(run.number)
        if seen is not None and not run.dirty:
            return seen.model
        dag = run.planned.dag
        if seen is None:
            if not self.perfect:
                self._shapes.pop(dag, None)
            shape = self._shape(run.planned)
            instances = [TaskInstance(task.task_id) for task in dag.tasks]
        else:
            shape, instances = seen.model.shape, seen.instances
        for i in run.dirty:
            task = run.tasks[i]
            instances[i] = TaskInstance(
                dag.tasks[i].task_id,
                state=task.state,
                try_number=1 if task.state is not TaskState.NONE else 0,
                started_at=task.created_at,
                ready_at=task.ready_at or None,
            )
        run.dirty.clear()
        starts_at = run.started_at if run.phase is RunPhase.ACTIVE else run.planned.starts_at
        model = Run(dag.dag_id, run.planned.run_id, run.phase, starts_at, shape, tuple(instances))
        self._seen[run.number] = _SeenRun(instances, model)
        return model

    def _shape(self, planned: PlannedRun) -> DagShape:
        key = planned if self.perfect else planned.dag
        known = self._shapes.get(key)
        if known is None:
            known = self._shapes[key] = self._make_shape(planned)
        return known

    def _make_shape(self, planned: PlannedRun) -> DagShape:
        dag, profiles = planned.dag, self.learner.profiles
        tasks = []
        for task, seconds in zip(dag.tasks, planned.seconds, strict=True):
            each = self.world.class_of(task.capacity_class)
            name = each.name if each else ""
            duration = (
                DurationEstimate(seconds, seconds, seconds, 1)
                if self.perfect
                else self.distortion.duration(profiles.estimate(dag.dag_id, task.task_id, name), task.task_id)
            )
            tasks.append(
                TaskSpec(
                    task_id=task.task_id,
                    upstream=tuple(dag.tasks[up].task_id for up in task.upstream),
                    needs_node=True,
                    capacity_class=name,
                    requests=one_pod(task.requests),
                    pool=each.airflow_pool if each else "default_pool",
                    pool_slots=task.requests.slots_of(each.slot_shape) if each else 1,
                    duration=duration,
                )
            )
        return DagShape(dag.dag_id, tuple(tasks), max_active_runs=dag.max_active_runs)

    # doing

    def _set_nodes(self, action: SetNodes) -> None:
        cluster = self.world.cluster
        pool = cluster.pools[action.node_pool]
        kept = 0
        by_name = {node.name: node for node in pool.nodes}
        for name in action.release:
            node = by_name.get(name)
            if node is None or not cluster.remove(node):
                kept += 1
        wanted = max(min(max(action.nodes + kept, pool.pool.min_nodes), pool.pool.max_nodes), len(pool.nodes))
        more = wanted - pool.size
        if more > 0:
            self.learner.asked(pool.name, more, self.world.now)
            cluster.launch(pool, more)
        elif more < 0:
            self.learner.withdrawn(pool.name, cluster.cancel(pool, -more))
