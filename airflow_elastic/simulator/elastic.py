"""The policy ``elastic``: the production planner, unchanged, driven as the controller drives it.

Each tick builds a snapshot of the simulated world, calls ``planning.planner.plan`` and does what it says. Decisions:
- A tick follows every change, ``tick_seconds`` after the one before at the soonest. While anything runs or stands there
  is one every ``idle_tick_seconds`` even if nothing changes, because expectations of running tasks move with time; and
  one at the next moment that the plan itself names (a reservation's or a forecast's time to ask). Otherwise the world
  sleeps.
- Nodes are set as the provider ``scale`` does: the named nodes go if no pod has come meanwhile, then the number is set;
  a number below what is coming takes back the latest requests.
- The structure of a DAG (with its estimates) is read anew when a run of it is created, not at every task's end.
- Profiles begin with what the training days showed: running times and widths of all tasks, and ``boots_seen`` boots.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from airflow_elastic.controller.learning import Learner
from airflow_elastic.kubernetes.cluster import NodeArrival
from airflow_elastic.model.plan import Plan, SetNodes, SetSlots
from airflow_elastic.model.reservation import Reservation, ReservationState
from airflow_elastic.model.snapshot import PlannerMemory, Snapshot
from airflow_elastic.planning.planner import plan
from airflow_elastic.simulator.airflow import SimTask
from airflow_elastic.simulator.cluster import SimPod
from airflow_elastic.simulator.distortion import TRUE_FORECAST, Distortion
from airflow_elastic.simulator.view import PlannerView
from airflow_elastic.simulator.world import World

__all__ = ["Elastic"]

_LONGEST_SLEEP_SECONDS = 3600.0


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

        ``perfect``: the planner is told every task's true length; ``distortion``: how its forecasts are made wrong.
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
        self.learner: Learner
        self._view: PlannerView
        self._last_tick = float("-inf")
        self._next_tick = float("inf")
        self._reservations: tuple[Reservation, ...] = ()
        self._memory = PlannerMemory()

    def begin(self, world: World) -> None:
        """Learn from the training days and make the first plan."""
        self.world = world
        self.learner = Learner(world.settings.scaling.default_task_seconds)
        self._view = PlannerView(world, self.learner, self.distortion, perfect=self.perfect)
        self._train()
        world.on_pod_ended = self._learn
        self._wake(world.now)

    def changed(self) -> None:
        """Plan soon."""
        self._wake(self._last_tick + self.tick_seconds)

    def _train(self) -> None:
        profiles, name_of = self.learner.profiles, self._view.class_name
        ends = []
        for run in self.world.workload.training:
            widths: dict[str, int] = {}
            for task, seconds in zip(run.dag.tasks, run.seconds, strict=True):
                ends.append((run.starts_at + seconds, run.dag.dag_id, task.task_id, name_of(task), seconds))
                if task.map_index >= 0:
                    widths[task.task_id] = widths.get(task.task_id, 0) + 1
            for task_id, width in widths.items():
                profiles.observe_width(run.dag.dag_id, task_id, width)
        for at, dag_id, task_id, name, seconds in sorted(ends):
            profiles.observe(dag_id, task_id, name, seconds, at)
        for pool in self.world.cluster.pools.values():
            random = Random(f"{self.world.conditions.seed} training boots {pool.name}")
            for _ in range(self.boots_seen):
                profiles.observe_boot(pool.name, pool.truth.boot_draw(random))

    def _learn(self, task: SimTask, pod: SimPod) -> None:
        run, now = task.run.planned, self.world.now
        template = run.dag.tasks[task.index]
        seconds = now - (pod.started_at if pod.started_at is not None else now)
        name = self._view.class_name(template)
        self.learner.profiles.observe(run.dag.dag_id, template.task_id, name, seconds, now)

    def _wake(self, at: float) -> None:
        at = max(at, self.world.now)
        if at < self._next_tick:
            self._next_tick = at
            self.world.engine.at(at, self._tick_at, at)

    def _tick_at(self, at: float) -> None:
        if at != self._next_tick:
            return  # a sooner one was asked for meanwhile
        self._next_tick = float("inf")
        self._tick()

    def _tick(self) -> None:
        self._last_tick = self.world.now
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
        self._wake(self._next_moment(snapshot, result))

    def _snapshot(self) -> Snapshot:
        world, view = self.world, self._view
        arrived = [NodeArrival(node.name, node.pool.name, node.asked_at, node.usable_at or world.now)
                   for node in world.cluster.arrivals]  # fmt: skip
        world.cluster.arrivals.clear()
        self.learner.arrivals(arrived)
        runs = view.runs()
        self.learner.widths(runs)
        return Snapshot(
            now=world.now,
            settings=world.settings,
            nodes=view.nodes(),
            pods=view.pods(),
            airflow_pools=view.airflow_pools(),
            runs=runs,
            node_pool_states=view.states(),
            reservations=self._reservations,
            boot=self.learner.boots(world.settings),
            memory=self._memory,
        )

    def _next_moment(self, snapshot: Snapshot, result: Plan) -> float:
        """Return when to plan again if nothing changes until then."""
        now, pools = self.world.now, self.world.cluster.pools
        moments = [each.ask_at for each in result.reservations if each.state is ReservationState.PLANNED]
        moments += [each.ask_at for each in result.runs]
        leads = {each.node_pool: each.needed_at - each.ask_at for each in result.runs}
        for forecast in result.node_pools:
            lead, size = leads.get(forecast.node_pool), pools[forecast.node_pool].size
            if lead is not None:
                moments += [at - lead for at, nodes in forecast.steps if nodes > size]
        cooldown = snapshot.settings.scaling.scale_in_cooldown_seconds
        moments += [at + cooldown for _, at in result.memory.last_scale_out_at]
        later = [at for at in moments if at > now]
        is_busy = self.world.airflow.active or any(pool.size for pool in pools.values())
        later.append(now + (self.idle_tick_seconds if is_busy else _LONGEST_SLEEP_SECONDS))
        return max(min(later), now + self.tick_seconds)

    def _set_nodes(self, action: SetNodes) -> None:
        cluster = self.world.cluster
        pool = cluster.pools[action.node_pool]
        by_name = {node.name: node for node in pool.nodes}
        kept = 0
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
