"""Hypothesis strategies for whole worlds: settings, DAGs, runs under way, nodes, pods, pools and reservations.

They are consistent where the real observers are (names are unique, a bound pod names a node) and free everywhere else.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from planning_worlds import GIB, NOW, SETTINGS, coming_by_placeholders, placeholder

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
from airflow_elastic.model.reservation import Reservation, ReservationState
from airflow_elastic.model.resources import Resources
from airflow_elastic.model.settings import Mode, ScalingRules, Settings
from airflow_elastic.model.snapshot import AirflowPool, Node, NodePoolState, PlannerMemory, Pod, PodPhase, Snapshot

POOL_NAMES = ("fixed", "elastic", "spot")
CLASS_NAMES = ("core", "burst", "batch")
RULES = (
    "all_success", "all_done", "none_failed", "none_failed_min_one_success", "one_success", "one_failed", "one_done",
    "all_failed", "none_skipped", "all_skipped", "always",
)  # fmt: skip
STATES = tuple(TaskState)

requests = st.builds(
    lambda cpu, memory, gpu: Resources.of({"cpu": cpu, "memory": memory * GIB // 4, "nvidia.com/gpu": gpu}),
    st.sampled_from([0, 100, 500, 1000, 2000, 3500, 9000]),
    st.integers(0, 12),
    st.sampled_from([0, 0, 0, 0, 1]),
)
shapes = st.builds(
    lambda cpu, memory, pods: Resources.of(cpu=cpu * 1000, memory=memory * GIB, pods=pods),
    st.sampled_from([2, 4, 8]),
    st.sampled_from([4, 8, 16]),
    st.sampled_from([3, 20, 110]),
)
seconds = st.one_of(st.floats(0.0, 5000.0), st.sampled_from([0.0, 1e9]))
estimates = st.builds(DurationEstimate, seconds, seconds, seconds)


@st.composite
def settings(draw: st.DrawFn, modes: tuple[Mode, ...] = (Mode.MANAGE,)) -> Settings:
    pools = []
    for name in draw(st.lists(st.sampled_from(POOL_NAMES), min_size=1, max_size=3, unique=True)):
        low = draw(st.integers(0, 2))
        boot = draw(st.floats(1.0, 300.0))
        pools.append(
            NodePool(
                name,
                (("pool", name),),
                draw(shapes),
                min_nodes=low,
                max_nodes=low + draw(st.integers(0, 6)),
                boot_seconds=boot,
                boot_seconds_p95=boot * draw(st.floats(1.0, 3.0)),
                provider=draw(st.sampled_from(["scale", "scale", "placeholder", "none"])),
            )
        )
    names = [pool.name for pool in pools]
    classes = tuple(
        CapacityClass(
            name,
            tuple(draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))),
            draw(st.sampled_from([name, name, "shared"])),
            Resources.of(cpu=draw(st.sampled_from([500, 1000, 2000])), memory=draw(st.integers(1, 4)) * GIB),
            wait_price_ratio=draw(st.sampled_from([1.0, 9.0, 99.0])),
        )
        for name in draw(st.lists(st.sampled_from(CLASS_NAMES), min_size=1, max_size=3, unique=True))
    )
    scaling = ScalingRules(
        scale_in_cooldown_seconds=draw(st.sampled_from([0.0, 60.0])),
        max_hold_seconds=draw(st.sampled_from([60.0, 3600.0])),
        hold_factor=draw(st.sampled_from([0.0, 1.0, 3.0])),
    )
    return replace(
        SETTINGS, node_pools=tuple(pools), classes=classes, mode=draw(st.sampled_from(modes)), scaling=scaling,
        default_class=classes[0].name,
    )  # fmt: skip


@st.composite
def dag_shapes(draw: st.DrawFn, dag_id: str) -> DagShape:
    tasks: list[TaskSpec] = []
    for i in range(draw(st.integers(1, 6))):
        names = [each.task_id for each in tasks]
        is_mapped = draw(st.integers(0, 5)) == 0
        tasks.append(
            TaskSpec(
                f"t{i}",
                tuple(draw(st.lists(st.sampled_from(names), max_size=3, unique=True))) if names else (),
                draw(st.sampled_from(RULES)),
                needs_node=draw(st.sampled_from([True, True, True, False])),
                capacity_class=draw(st.sampled_from([*CLASS_NAMES, "", "nobody"])),
                node_pools=draw(st.sampled_from([(), (), (), ("elastic",), ("nowhere",)])),
                requests=draw(requests),
                is_mapped=is_mapped,
                mapped_width=draw(st.integers(0, 30)) if is_mapped else 1,
                pool=draw(st.sampled_from([*CLASS_NAMES, "shared", "default_pool"])),
                pool_slots=draw(st.integers(1, 6)),
                duration=draw(estimates),
                holds_worker=draw(st.booleans()),
            )
        )
    return DagShape(
        dag_id,
        tuple(tasks),
        max_active_tasks=draw(st.sampled_from([1, 2, 16])),
        max_active_runs=draw(st.sampled_from([1, 2, 16])),
        is_paused=draw(st.integers(0, 9)) == 0,
    )


annotations = st.builds(
    RunAnnotation,
    nodes=st.integers(0, 8),
    capacity_class=st.sampled_from(["", *CLASS_NAMES, "nobody"]),
    hold_seconds=st.sampled_from([0.0, 30.0, 1e6]),
    refused=st.sampled_from(["", "too much"]),
)


@st.composite
def instances(draw: st.DrawFn, shape: DagShape) -> tuple[TaskInstance, ...]:
    found = []
    for spec in shape.tasks:
        indices = range(draw(st.integers(0, 4))) if spec.is_mapped and draw(st.booleans()) else (-1,)
        for index in indices:
            state = draw(st.sampled_from(STATES))
            found.append(
                TaskInstance(
                    spec.task_id,
                    index,
                    state,
                    1,
                    started_at=NOW - draw(st.floats(0, 4000)) if state.is_started else None,
                    resumes=draw(st.integers(0, 4)) == 0 and not state.is_finished,
                )
            )
    return tuple(found)


@st.composite
def runs(draw: st.DrawFn) -> list[Run]:
    found = []
    for d in range(draw(st.integers(0, 3))):
        shape = draw(dag_shapes(f"dag{d}"))
        for r in range(draw(st.integers(1, 3))):
            phase = draw(st.sampled_from(list(RunPhase)))
            offset = draw(st.floats(-4000, 400)) if phase is RunPhase.COMING else -draw(st.floats(0, 4000))
            found.append(
                Run(
                    shape.dag_id,
                    f"run{r}",
                    phase,
                    NOW + offset,
                    shape,
                    draw(instances(shape)) if phase is RunPhase.ACTIVE else (),
                    draw(st.none() | annotations),
                    is_backfill=draw(st.booleans()),
                )
            )
    return found


@st.composite
def nodes(draw: st.DrawFn, file: Settings) -> list[Node]:
    found = []
    for pool in file.node_pools:
        for i in range(draw(st.integers(0, min(pool.max_nodes, 5)))):
            state = draw(st.sampled_from(["usable"] * 5 + ["booting", "cordoned", "lost", "releasing"]))
            found.append(
                Node(
                    f"{pool.name}-{i}",
                    pool.name,
                    pool.shape,
                    usable=state == "usable",
                    unusable_because="" if state == "usable" else state,
                    created_at=NOW - draw(st.floats(0, 1e4)),
                    usable_since=NOW - 1.0 if state == "usable" else None,
                    foreign=draw(st.sampled_from([Resources(), Resources.of(cpu=300, memory=GIB // 2, pods=2)])),
                    is_booting=state == "booting",
                    is_lost=state == "lost",
                    is_releasing=state == "releasing",
                    blocks_release=draw(st.sampled_from(["", "", "", "a foreign pod runs there"])),
                )
            )
    return found


@st.composite
def pods(draw: st.DrawFn, file: Settings, all_runs: list[Run], all_nodes: list[Node]) -> list[Pod]:
    found = []
    owners = [
        TaskKey(run.dag_id, run.run_id, each.task_id, each.map_index) for run in all_runs for each in run.tasks
    ] + [TaskKey("ghost", "run", "t0")]
    on = [node.name for node in all_nodes if not node.is_booting]
    for i in range(draw(st.integers(0, 8))):
        bound = draw(st.sampled_from(["", *on]))
        finished = draw(st.integers(0, 4)) == 0
        found.append(
            Pod(
                f"pod{i}",
                "default",
                draw(requests) + Resources.of(pods=1),
                PodPhase.SUCCEEDED if finished else PodPhase.RUNNING if bound else PodPhase.PENDING,
                bound,
                draw(st.none() | st.sampled_from(owners)),
                draw(st.sampled_from([*CLASS_NAMES, "", "nobody"])),
                created_at=NOW - 50,
                started_at=NOW - draw(st.floats(0, 4000)) if bound else None,
                is_deleting=draw(st.integers(0, 9)) == 0,
            )
        )
    for pool in file.node_pools:
        if pool.provider == "placeholder":
            found += [placeholder(pool.name, i) for i in range(draw(st.integers(0, 2)))]
    return found


@st.composite
def reservations(draw: st.DrawFn, file: Settings, all_runs: list[Run]) -> list[Reservation]:
    keys = [(run.dag_id, run.run_id) for run in all_runs] + [("ghost", "run")]
    found = []
    for dag_id, run_id in draw(st.lists(st.sampled_from(keys), max_size=4, unique=True)):
        state = draw(st.sampled_from(list(ReservationState)))
        needed_at = NOW + draw(st.floats(-4000, 400))
        found.append(
            Reservation(
                dag_id,
                run_id,
                draw(st.sampled_from([pool.name for pool in file.node_pools] + ["gone"])),
                draw(st.integers(1, 5)),
                state,
                needed_at,
                needed_at + 100,
                needed_at - 60,
                asked_at=None if state is ReservationState.PLANNED else NOW - 100,
                expires_at=NOW + draw(st.sampled_from([-10.0, 0.0, 50.0, file.scaling.max_hold_seconds])),
            )
        )
    return found


@st.composite
def worlds(draw: st.DrawFn, modes: tuple[Mode, ...] = (Mode.MANAGE,)) -> Snapshot:
    """Return a snapshot of anything that may be observed."""
    file = draw(settings(modes))
    all_runs = draw(runs())
    all_nodes = draw(nodes(file))
    all_pods = draw(pods(file, all_runs, all_nodes))
    states = []
    for pool in file.node_pools:
        standing = sum(n.node_pool == pool.name and not n.is_releasing and not n.is_lost for n in all_nodes)
        coming = draw(st.integers(0, 2))
        failure = draw(st.sampled_from(["", "", "", "no machines"]))
        if pool.provider == "scale":
            states.append(NodePoolState(pool.name, standing + coming, coming, failure=failure))
        elif pool.provider == "placeholder":
            waiting = coming_by_placeholders(pool.name, all_nodes, all_pods)
            states.append(NodePoolState(pool.name, None, waiting, failure=failure))
    names = dict.fromkeys(each.airflow_pool for each in file.classes)
    pools = [
        AirflowPool(name, draw(st.integers(-1, 20)), *draw(st.tuples(*[st.integers(0, 3)] * 4)))
        for name in names
        if draw(st.integers(0, 5))
    ]
    grown = [(pool.name, NOW - draw(st.sampled_from([5.0, 100.0]))) for pool in file.node_pools if draw(st.booleans())]
    return Snapshot(
        NOW,
        file,
        tuple(all_nodes),
        tuple(all_pods),
        tuple(pools),
        tuple(all_runs),
        tuple(states),
        tuple(draw(reservations(file, all_runs))),
        memory=PlannerMemory(last_scale_out_at=tuple(grown)),
    )
