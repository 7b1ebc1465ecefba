"""Small worlds for the planner's tests: one elastic pool, one fixed pool, two classes, and builders for the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from airflow_elastic.model.capacity_class import CapacityClass
from airflow_elastic.model.demand import (
    DagShape,
    DurationEstimate,
    Run,
    RunAnnotation,
    RunPhase,
    TaskInstance,
    TaskKey,
    TaskSpec,
    TaskState,
)
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.plan import Plan, SetNodes, SetSlots
from airflow_elastic.model.resources import Resources
from airflow_elastic.model.settings import Mode, ScalingRules, Settings
from airflow_elastic.model.snapshot import AirflowPool, Node, NodePoolState, Pod, PodPhase, Snapshot

NOW = 1_000_000.0
GIB = 2**30
SHAPE = Resources.of(cpu=4000, memory=8 * GIB, pods=20)
SLOT = Resources.of(cpu=1000, memory=GIB)
POD = Resources.of(cpu=1000, memory=GIB, pods=1)
FIXED = NodePool("fixed", (("pool", "fixed"),), SHAPE, min_nodes=1, max_nodes=1, boot_seconds=30, provider="none")
ELASTIC = NodePool(
    "elastic", (("pool", "elastic"),), SHAPE, max_nodes=6, boot_seconds=30, boot_seconds_p95=60, provider="scale"
)
CORE = CapacityClass("core", ("fixed",), "core", SLOT)
BURST = CapacityClass("burst", ("elastic",), "burst", SLOT, evictable=True)
SCALING = ScalingRules(scale_in_cooldown_seconds=60.0, prewarm_margin_seconds=5.0, tick_seconds=1.0)
SETTINGS = Settings((FIXED, ELASTIC), (CORE, BURST), Mode.MANAGE, default_class="burst", scaling=SCALING)
LEAD = 60.0 + 6.0
"""Boot time's q90 of ``elastic`` plus margin and tick."""
HOLD = 30.0


def with_pool(settings: Settings, pool: NodePool) -> Settings:
    return replace(settings, node_pools=tuple(pool if each.name == pool.name else each for each in settings.node_pools))


def duration(q50: float, q10: float | None = None, q90: float | None = None) -> DurationEstimate:
    return DurationEstimate(q10 if q10 is not None else q50, q50, q90 if q90 is not None else q50, 10)


def task(
    task_id: str,
    upstream: Sequence[str] = (),
    seconds: float = 60.0,
    *,
    node: bool = True,
    capacity_class: str = "burst",
    requests: Resources = SLOT,
    q10: float | None = None,
    q90: float | None = None,
    **more: object,
) -> TaskSpec:
    pool = capacity_class if node else "default_pool"
    spec = TaskSpec(
        task_id,
        tuple(upstream),
        needs_node=node,
        capacity_class=capacity_class,
        requests=requests,
        pool=pool,
        duration=duration(seconds, q10, q90),
    )
    return replace(spec, **more)  # type: ignore[arg-type]


def dag(dag_id: str, *tasks: TaskSpec, **more: object) -> DagShape:
    return replace(DagShape(dag_id, tuple(tasks)), **more)  # type: ignore[arg-type]


def coming(shape: DagShape, in_seconds: float, run_id: str = "", annotation: RunAnnotation | None = None) -> Run:
    starts_at = NOW + in_seconds
    return Run(shape.dag_id, run_id or f"run_{in_seconds:.0f}", RunPhase.COMING, starts_at, shape, (), annotation)


def active(
    shape: DagShape,
    states: Mapping[str, TaskState | tuple[TaskInstance, ...]],
    run_id: str = "run",
    started: float = NOW,
    annotation: RunAnnotation | None = None,
) -> Run:
    instances: list[TaskInstance] = []
    for spec in shape.tasks:
        state = states.get(spec.task_id, TaskState.NONE)
        instances.extend(state if isinstance(state, tuple) else (TaskInstance(spec.task_id, state=state),))
    return Run(shape.dag_id, run_id, RunPhase.ACTIVE, started, shape, tuple(instances), annotation)


def node(name: str, pool: str = "elastic", **more: object) -> Node:
    fields: dict[str, object] = {"usable": True, "created_at": NOW - 1000, "usable_since": NOW - 900, **more}
    return Node(name, pool, SHAPE, **fields)  # type: ignore[arg-type]


def booting(name: str, pool: str = "elastic", **more: object) -> Node:
    return node(name, pool, usable=False, is_booting=True, usable_since=None, created_at=NOW - 10, **more)


def pod(
    name: str,
    on: str = "",
    owner: tuple[str, str, str] | None = None,
    capacity_class: str = "burst",
    started: float | None = NOW,
    **more: object,
) -> Pod:
    fields: dict[str, object] = {
        "requests": POD,
        "phase": PodPhase.RUNNING if on else PodPhase.PENDING,
        "node": on,
        "owner": TaskKey(*owner) if owner else None,
        "capacity_class": capacity_class,
        "created_at": NOW,
        "started_at": started if on else None,
        **more,
    }
    return Pod(name, "default", **fields)  # type: ignore[arg-type]


def world(
    *,
    runs: Sequence[Run] = (),
    nodes: Sequence[Node] = (),
    pods: Sequence[Pod] = (),
    pools: Sequence[AirflowPool] | None = None,
    desired: int | None = 0,
    state: NodePoolState | None = None,
    settings: Settings = SETTINGS,
    **more: object,
) -> Snapshot:
    """Return a snapshot; Airflow pools stand at what fits unless given, so that only the tested thing changes."""
    snapshot = Snapshot(
        NOW,
        settings,
        tuple(nodes),
        tuple(pods),
        tuple(pools) if pools is not None else (AirflowPool("core", 0), AirflowPool("burst", 0)),
        tuple(runs),
        (state or NodePoolState("elastic", desired),),
    )
    return replace(snapshot, **more)  # type: ignore[arg-type]


def nodes_action(plan: Plan, pool: str = "elastic") -> SetNodes | None:
    return next((a for a in plan.actions if isinstance(a, SetNodes) and a.node_pool == pool), None)


def slots_action(plan: Plan, pool: str = "burst") -> SetSlots | None:
    return next((a for a in plan.actions if isinstance(a, SetSlots) and a.airflow_pool == pool), None)


def after(snapshot: Snapshot, plan: Plan, seconds: float = 0.0) -> Snapshot:
    """Return the snapshot once the plan has been carried out to the letter and nothing else has happened."""
    pools = {pool.name: pool for pool in snapshot.airflow_pools}
    states = {state.node_pool: state for state in snapshot.node_pool_states}
    leaving: set[str] = set()
    pods = list(snapshot.pods)
    for action in plan.actions:
        if isinstance(action, SetSlots):
            old = pools.get(action.airflow_pool, AirflowPool(action.airflow_pool, 0))
            pools[action.airflow_pool] = replace(old, slots=action.slots)
            continue
        leaving |= set(action.release)
        state = states.get(action.node_pool, NodePoolState(action.node_pool))
        if state.desired_nodes is not None:
            state = replace(state, desired_nodes=action.nodes)
        else:
            pods = [each for each in pods if not (each.placeholder_of and each.node_pools == (action.node_pool,))]
            pods += [placeholder(action.node_pool, i) for i in range(action.warm_nodes)]
        states[action.node_pool] = state
    nodes = tuple(
        replace(each, is_releasing=True, usable=False) if each.name in leaving else each for each in snapshot.nodes
    )
    for name, state in states.items():
        if state.desired_nodes is not None:
            standing = sum(n.node_pool == name and not n.is_releasing and not n.is_lost for n in nodes)
            states[name] = replace(state, coming_nodes=max(state.desired_nodes - standing, 0))
        else:
            states[name] = replace(state, coming_nodes=coming_by_placeholders(name, nodes, pods))
    return replace(
        snapshot,
        now=snapshot.now + seconds,
        airflow_pools=tuple(pools.values()),
        node_pool_states=tuple(states.values()),
        nodes=nodes,
        pods=tuple(pods),
        reservations=plan.reservations,
        memory=plan.memory,
    )


def coming_by_placeholders(pool: str, nodes: Sequence[Node], pods: Sequence[Pod]) -> int:
    """Return the nodes that pending placeholders stand for: all but those that a free or booting node will take."""
    held = {each.node for each in pods if each.node and not each.phase.is_finished}
    free = sum((n.usable and n.name not in held) or n.is_booting for n in nodes if n.node_pool == pool)
    pending = sum(bool(p.placeholder_of) and p.node_pools == (pool,) and not p.node for p in pods)
    return max(pending - free, 0)


def placeholder(pool: str, index: int = 0, on: str = "") -> Pod:
    return Pod(
        f"placeholder-{pool}-{index}",
        "default",
        SHAPE,
        PodPhase.RUNNING if on else PodPhase.PENDING,
        node=on,
        placeholder_of="0" * 16,
        node_pools=(pool,),
    )
