"""The planner: one snapshot in, one plan out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from airflow_elastic.model.demand import TaskKey
from airflow_elastic.model.plan import Action, Plan, Refusal, SetNodes, SetSlots
from airflow_elastic.model.reasons import Reason, ReasonCode
from airflow_elastic.model.resources import Resources
from airflow_elastic.model.settings import Mode
from airflow_elastic.model.snapshot import PlannerMemory, Snapshot
from airflow_elastic.planning.annotations import holds_of, refused_annotations
from airflow_elastic.planning.demand import collect_demand
from airflow_elastic.planning.need import Needs
from airflow_elastic.planning.packing import pack, room_of_new_node
from airflow_elastic.planning.pools import pool_views
from airflow_elastic.planning.release import Standing
from airflow_elastic.planning.reservations import forecasts, next_reservations, wishes_of
from airflow_elastic.planning.sizing import PoolSize, size_pool
from airflow_elastic.planning.slots import plan_slots
from airflow_elastic.planning.validate import Feasibility, refuse_impossible
from airflow_elastic.planning.vectors import ResourceIndex

__all__ = ["plan"]

_COLLECT_SECONDS = 300.0


def plan(snapshot: Snapshot) -> Plan:
    """Return what to do now. The same snapshot gives the same plan; a quiet one gives no action.

    Raises nothing on purpose: what cannot be planned is refused with a reason.
    """
    frozen = _frozen(snapshot)
    if frozen is not None:
        return Plan(reservations=snapshot.reservations, memory=snapshot.memory, frozen=frozen)
    settings, now = snapshot.settings, snapshot.now
    views = pool_views(snapshot)
    feasibility = Feasibility(views)
    demand = collect_demand(snapshot, views, feasibility)
    shapes = {id(each.facts): each.facts for each in demand.runs}
    index = ResourceIndex(_vectors(snapshot, [kind.requests for each in shapes.values() for kind in each.kinds]))
    idle_since, task_pods = _idle(snapshot)
    standing = Standing(task_pods, idle_since, now, _uncollected(snapshot, idle_since))
    placed = pack(demand, snapshot.nodes, views, index, standing)
    holds = holds_of(demand, settings, views)
    sizes = {name: size_pool(snapshot, view, demand, placed, holds, standing) for name, view in views.items()}
    done, refused, usable = _by_mode(snapshot, sizes, index)

    needs_of = Needs(views, feasibility, index, {name: room_of_new_node(view, index) for name, view in views.items()})
    needs = [needs_of.of(each) for each in demand.runs]
    wishes = wishes_of(demand, needs, placed, holds, views, now)
    reservations, transitions = next_reservations(snapshot, demand, wishes, sizes)
    refusals = [
        *refuse_impossible(shapes.values(), settings, views, feasibility),
        *refused_annotations(demand),
        *(refusal for size in sizes.values() for refusal in size.refusals),
        *refused,
    ]
    return Plan(
        actions=tuple(done),
        refusals=tuple(refusals),
        reservations=reservations,
        transitions=transitions,
        node_pools=tuple(size.forecast for size in sizes.values()),
        runs=forecasts(demand, wishes, views, now + settings.scaling.horizon_seconds),
        usable_slots=usable,
        kept=tuple(refusal for size in sizes.values() for refusal in size.kept),
        memory=_memory(snapshot, done, idle_since),
    )


def _frozen(snapshot: Snapshot) -> Reason | None:
    limit = snapshot.settings.scaling.stale_after_seconds
    for age, code in (
        (snapshot.cluster_age_seconds, ReasonCode.FROZEN_CLUSTER),
        (snapshot.airflow_age_seconds, ReasonCode.FROZEN_AIRFLOW),
    ):
        if not age <= limit:  # NaN is stale too
            return Reason.of(code, age_seconds=age, limit_seconds=limit)
    return None


def _vectors(snapshot: Snapshot, requests: Sequence[Resources]) -> list[Resources]:
    """Return all vectors that are asked for: only what somebody asks for can run out."""
    return [
        *dict.fromkeys(requests),
        *{pod.requests for pod in snapshot.pods if not pod.placeholder_of},
        *(each.slot_shape for each in snapshot.settings.classes),
    ]


def _idle(snapshot: Snapshot) -> tuple[dict[str, float], dict[str, int]]:
    """Return since when each node is idle, and the pods of tasks on each node that is not."""
    task_pods: dict[str, int] = defaultdict(int)
    for pod in snapshot.pods:
        if pod.node and pod.takes_room:
            task_pods[pod.node] += 1
    known = dict(snapshot.memory.idle_since)
    names = {pool.name for pool in snapshot.settings.node_pools}
    idle = {
        node.name: known.get(node.name, snapshot.now)
        for node in snapshot.nodes
        if node.node_pool in names and not task_pods.get(node.name)
    }
    return idle, task_pods


def _uncollected(snapshot: Snapshot, idle_since: Mapping[str, float]) -> dict[str, int]:
    """Return the finished pods by idle node whose task instances have not ended yet.

    With the node, the pod object and its log would go before a worker has read them. It is waited for a while only: a
    pod that nobody fetches (Airflow is down, the task was lost) must not hold a node for ever.
    """
    finished = [
        pod
        for pod in snapshot.pods
        if pod.owner is not None
        and pod.phase.is_finished
        and snapshot.now - idle_since.get(pod.node, float("-inf")) < _COLLECT_SECONDS
    ]
    if not finished:
        return {}
    wanted = {(pod.owner.dag_id, pod.owner.run_id) for pod in finished if pod.owner is not None}
    unfinished = {
        TaskKey(run.dag_id, run.run_id, each.task_id, each.map_index)
        for run in snapshot.runs
        if (run.dag_id, run.run_id) in wanted
        for each in run.tasks
        if each.state.is_started or each.resumes
    }
    counts: dict[str, int] = defaultdict(int)
    for pod in finished:
        if pod.owner in unfinished:
            counts[pod.node] += 1
    return counts


def _by_mode(
    snapshot: Snapshot, sizes: Mapping[str, PoolSize], index: ResourceIndex
) -> tuple[list[Action], list[Refusal], tuple[tuple[str, int], ...]]:
    """Return the actions in their order, what would be done but for the mode, and the slots that fit now."""
    mode = snapshot.settings.mode
    nodes = [size.action for size in sizes.values() if size.action is not None]
    releasing = {name for action in nodes for name in action.release} if mode is Mode.MANAGE else set()
    slots = plan_slots(snapshot, releasing, index)
    down = [each for each in slots.actions if each.is_down]
    up = [each for each in slots.actions if not each.is_down]
    done: list[Action] = []
    held: list[Action] = []
    (held if mode is Mode.OBSERVE else done).extend(down)
    (done if mode is Mode.MANAGE else held).extend(nodes)
    (held if mode is Mode.OBSERVE else done).extend(up)
    return done, [Refusal(_about(each), _recommended(mode, each)) for each in held], slots.usable


def _about(action: Action) -> str:
    return action.airflow_pool if isinstance(action, SetSlots) else action.node_pool


def _recommended(mode: Mode, action: Action) -> Reason:
    if isinstance(action, SetSlots):
        change = f"{action.airflow_pool} from {action.was} to {action.slots} slot(s)"
    else:
        change = f"{action.node_pool} from {action.was} to {action.nodes} node(s)"
    return Reason.of(ReasonCode.OBSERVE_ONLY, mode=mode.value, what=f"{change}: {action.reason.sentence}")


def _memory(snapshot: Snapshot, done: Sequence[Action], idle_since: Mapping[str, float]) -> PlannerMemory:
    outs = dict(snapshot.memory.last_scale_out_at)
    ins = dict(snapshot.memory.last_scale_in_at)
    for action in done:
        if isinstance(action, SetNodes):
            if action.is_out:
                outs[action.node_pool] = snapshot.now
            elif action.release or action.nodes < action.was:
                ins[action.node_pool] = snapshot.now
    return PlannerMemory(tuple(sorted(outs.items())), tuple(sorted(ins.items())), tuple(sorted(idle_since.items())))
