"""From a task's class and requests to everything that follows: pool, slots, carrier, placement, time to start."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from airflow_elastic.errors import ConfigurationError
from airflow_elastic.kubernetes.placement import Placement, admitted_node_pools, placement_for
from airflow_elastic.model.capacity_class import CapacityClass
from airflow_elastic.model.carrier import TaskCapacity
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.reasons import Reason, ReasonCode
from airflow_elastic.model.resources import EPHEMERAL_STORAGE, PODS, Resources
from airflow_elastic.model.settings import Mode, Settings

__all__ = ["Tag", "class_by_rules", "tag_for", "why_impossible"]

_START_MARGIN_SECONDS = 120.0
# What a node pool's shape need not name, as the planner has it (not imported here: it brings numpy).
_UNNAMED_ROOM = {PODS: 110, EPHEMERAL_STORAGE: 2**60}


@dataclass(frozen=True, slots=True)
class Tag:
    """What a task gets from its capacity class."""

    settings: Settings
    capacity: TaskCapacity
    placement: Placement
    airflow_pool: str = ""
    """Empty: the task keeps its pool (mode observe)."""
    pool_slots: int = 0
    """0: the task keeps its slots (mode observe)."""
    start_timeout_seconds: int = 0
    """Time a pod must be given to be scheduled and to start, a slow boot of a new node included."""

    @property
    def acts(self) -> bool:
        """Tell whether tasks are changed at all: in mode observe they only carry what is known about them."""
        return self.settings.mode is not Mode.OBSERVE


def class_by_rules(
    settings: Settings, *, dag_id: str, task_id: str, operators: Iterable[str], tags: Iterable[str]
) -> str:
    """Return the class of the first rule that matches a task, or an empty string.

    ``operators`` are the names that its operator answers to, most special first.
    """
    operators, tags = tuple(operators), tuple(tags)
    for rule in settings.rules:
        if (
            fnmatchcase(dag_id, rule.dag_id)
            and fnmatchcase(task_id, rule.task_id)
            and any(fnmatchcase(name, rule.operator) for name in operators)
            and (rule.tag == "*" or any(fnmatchcase(tag, rule.tag) for tag in tags))
        ):
            return rule.capacity_class
    return ""


def tag_for(
    settings: Settings,
    *,
    task: str,
    capacity_class: str,
    requests: Resources,
    node_pools: Sequence[str] = (),
    pool_slots: int | None = None,
) -> Tag:
    """Return everything that follows for a task (named ``dag_id.task_id`` in messages).

    ``pool_slots`` are those that the task states itself, if it does. A task that can never run is not refused here:
    ``tag.capacity.impossible`` says why.

    Raises:
        ConfigurationError: the class or one of the node pools is not in the settings.
    """
    owner = settings.capacity_class(capacity_class)
    if owner is None:
        known = ", ".join(each.name for each in settings.classes) or "it has none"
        raise ConfigurationError(
            Reason.of(ReasonCode.UNKNOWN_CLASS, task=task, capacity_class=capacity_class, known=known).sentence
        )
    pools = admitted_node_pools(settings, owner, node_pools)
    slots = pool_slots or _slots(owner, pools, requests)
    impossible = why_impossible(task, owner, pools, requests, slots)
    capacity = TaskCapacity(owner.name, requests, tuple(node_pools), impossible)
    placement = placement_for(settings, capacity)
    if settings.mode is Mode.OBSERVE:
        placement = Placement({}, [], "", placement.labels)
        return Tag(settings, capacity, placement)
    longest_boot = max(max(pool.boot_seconds, pool.boot_seconds_p95) for pool in pools)
    return Tag(
        settings,
        capacity,
        placement,
        airflow_pool=owner.airflow_pool,
        pool_slots=slots,
        # One boot that fails and is asked for again must not fail the task.
        start_timeout_seconds=math.ceil(2 * longest_boot + _START_MARGIN_SECONDS),
    )


def why_impossible(
    task: str, owner: CapacityClass, pools: Sequence[NodePool], requests: Resources, slots: int = 1
) -> str:
    """Return why no node of ``pools`` can ever hold the task, as one sentence; empty: one can."""
    if not any(pool.max_nodes > 0 and _fits(requests, pool) for pool in pools):
        return Reason.of(
            ReasonCode.IMPOSSIBLE_TASK,
            task=task,
            requests=requests.as_text(),
            node_pools=", ".join(pool.name for pool in pools),
            shape="; ".join(
                f"{pool.name}: {pool.shape.as_text() if pool.max_nodes > 0 else 'no node at all (max_nodes 0)'}"
                for pool in pools
            ),
        ).sentence
    most = sum(pool.max_nodes * _slots_of_node(owner, pool) for pool in pools)
    if slots > most:
        return Reason.of(
            ReasonCode.NOTE,
            text=f"{task} takes {slots} slot(s) of {owner.airflow_pool}, but class {owner.name} has {most} at most "
            f"with all nodes of {', '.join(pool.name for pool in pools)}; lower its pool_slots or raise max_nodes",
        ).sentence
    return ""


def _slots(owner: CapacityClass, pools: Sequence[NodePool], requests: Resources) -> int:
    # Rounding up must not make a task that fits a node wider, in slots, than that node counts for.
    wanted = requests.slots_of(owner.slot_shape)
    per_node = [_slots_of_node(owner, pool) for pool in pools if _fits(requests, pool)]
    return max(1, min(wanted, max(per_node))) if per_node else wanted


def _room(pool: NodePool, name: str) -> int:
    return pool.shape.get(name) or _UNNAMED_ROOM.get(name, 0)


def _fits(requests: Resources, pool: NodePool) -> bool:
    return all(amount <= _room(pool, name) for name, amount in requests.amounts)


def _slots_of_node(owner: CapacityClass, pool: NodePool) -> int:
    shape = dict(owner.slot_shape.amounts) | {PODS: owner.slot_shape.get(PODS) or 1}
    return min(_room(pool, name) // amount for name, amount in shape.items())
