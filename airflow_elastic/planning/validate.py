"""What can never run: tasks wider than every node, more slots than a node holds, classes that nobody declared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airflow_elastic.model.plan import Refusal
from airflow_elastic.model.reasons import Reason, ReasonCode
from airflow_elastic.model.resources import NO_RESOURCES, PODS, Resources
from airflow_elastic.model.settings import Settings
from airflow_elastic.planning.pools import PoolView
from airflow_elastic.planning.shapes import Kind, ShapeFacts
from airflow_elastic.planning.vectors import one_pod, room_amount

__all__ = ["Feasibility", "fits_node", "largest_slots", "refuse_impossible"]


def fits_node(requests: Resources, room: Resources) -> bool:
    """Tell whether a node's room holds the requests; what a shape need not name counts with its default."""
    return all(amount <= room_amount(room, name) for name, amount in requests.amounts)


class Feasibility:
    """Which node pools can ever hold a kind of pod: by the pool's shape, or by a node of it that stands."""

    def __init__(self, views: Mapping[str, PoolView]) -> None:
        self._rooms: dict[str, tuple[Resources, ...]] = {}
        for name, view in views.items():
            # A pool that may have no node offers nothing, whatever its shape says.
            shape = [view.pool.shape] if view.reachable or view.pool.max_nodes > 0 else []
            standing = {node.allocatable for node in view.usable + view.booting}
            self._rooms[name] = (*shape, *standing)
        self._known: dict[Kind, tuple[str, ...]] = {}

    def pools_for(self, kind: Kind) -> tuple[str, ...]:
        """Return the kind's pools that can hold it, in its order; empty: it can never run."""
        known = self._known.get(kind)
        if known is None:
            known = self._known[kind] = tuple(
                name
                for name in dict.fromkeys(kind.node_pools)
                if any(fits_node(kind.requests, room) for room in self._rooms.get(name, ()))
            )
        return known


def largest_slots(view: PoolView, slot_shape: Resources) -> int:
    """Return the most slots that one node of the pool holds."""
    shape = one_pod(slot_shape)
    rooms = [view.pool.shape, *(node.allocatable for node in view.usable)]
    return max(min(room_amount(room, name) // amount for name, amount in shape.amounts) for room in rooms)


def refuse_impossible(
    shapes: Iterable[ShapeFacts], settings: Settings, views: Mapping[str, PoolView], feasibility: Feasibility
) -> list[Refusal]:
    """Return one refusal for each task of the given structures that can never run as it is."""
    refusals: dict[tuple[str, ReasonCode], Refusal] = {}
    known = ", ".join(each.name for each in settings.classes) or "it has none"
    largest: dict[str, int] = {}
    for each in settings.classes:
        sizes = [largest_slots(views[name], each.slot_shape) for name in each.node_pools if name in views]
        largest[each.name] = max(sizes, default=0)

    def refuse(about: str, code: ReasonCode, **figures: object) -> None:
        refusals.setdefault((about, code), Refusal(about, Reason.of(code, task=about, **figures)))

    for facts in shapes:
        dag_id = facts.shape.dag_id
        for task_id, capacity_class in facts.unknown_class:
            refuse(f"{dag_id}.{task_id}", ReasonCode.UNKNOWN_CLASS, capacity_class=capacity_class, known=known)
        too_many = any(count > largest[name] for name, count in facts.most_slots.items())
        impossible = {i for i, kind in enumerate(facts.kinds) if not feasibility.pools_for(kind)}
        if not impossible and not too_many:
            continue
        for spec, local in zip(facts.shape.tasks, facts.kind_of_spec.tolist(), strict=True):
            if local < 0:
                continue
            kind, about = facts.kinds[local], f"{dag_id}.{spec.task_id}"
            capacity_class_ = settings.capacity_class(kind.capacity_class)
            if local in impossible:
                refuse(about, ReasonCode.IMPOSSIBLE_TASK, **_impossible(kind, views))
            elif (
                capacity_class_ is not None
                and spec.pool == capacity_class_.airflow_pool
                and spec.pool_slots > largest[capacity_class_.name]
            ):
                refuse(
                    about,
                    ReasonCode.IMPOSSIBLE_SLOTS,
                    pool_slots=spec.pool_slots,
                    airflow_pool=spec.pool,
                    largest=largest[capacity_class_.name],
                )
    return list(refusals.values())


def _impossible(kind: Kind, views: Mapping[str, PoolView]) -> dict[str, str]:
    """Return the figures of an impossible kind: what it asks for and what its pools offer."""
    shapes = [views[name].pool.shape.as_text() for name in kind.node_pools if name in views]
    asked = Resources.of({name: amount for name, amount in kind.requests.amounts if name != PODS})
    return {
        "requests": (asked or NO_RESOURCES).as_text(),
        "node_pools": ", ".join(kind.node_pools) or "no node pool",
        "shape": "; ".join(shapes) or "no node pool of that name",
    }
