"""Whose is a node's time? From the lives of nodes and pods, and what is reserved, to charges that add up to the bill.

Pure and incremental: each call takes for every node the stretch of its life that is not accounted for yet. Cut as one
likes, every millisecond is charged exactly once. Who is charged follows these rules, in this order:

1. While pods of tasks are on a node, its whole time is theirs, in proportion to the share of the node that each asked
   for: who keeps a node with one small pod on it pays for the node.
2. Before it is usable it boots for the reservation that is needed first and has not all its nodes yet.
3. Idle, it belongs to the run whose placeholder stands on it, else to its pool's minimum (the oldest idle nodes, as far
   as busy ones do not make up the minimum), else to the reservations that hold warm nodes, those needed first before.
4. On its way out it is leaving. Anything else is unexplained.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from airflow_elastic.model.ledger import Charge, Use

__all__ = ["Hold", "Stretch", "Work", "account", "split"]

_Run = tuple[str, str]
"""(dag_id, run_id)"""
_Owner = tuple[Use, str, str]
"""(use, dag_id, run_id)"""
_NOBODY: _Owner = (Use.UNEXPLAINED, "", "")
_MINIMUM: _Owner = (Use.MINIMUM, "", "")
_LEAVING: _Owner = (Use.LEAVING, "", "")


@dataclass(frozen=True, slots=True)
class Work:
    """A task's pod on a node."""

    dag_id: str
    run_id: str
    task_id: str
    weight: int
    """Share of the node that it asked for, in millionths; at least 1 is counted."""
    from_ms: int
    until_ms: int | None = None
    """None: it is there still."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The part of one node's life that is to be accounted for."""

    node_uid: str
    node_pool: str
    from_ms: int
    until_ms: int
    usable_ms: int | None
    """When it became usable; None: it has not yet."""
    is_leaving: bool = False
    is_idle_capacity: bool = True
    """False: it was usable once and is not now, so it is neither warm nor part of the minimum."""
    work: tuple[Work, ...] = ()
    held_for: tuple[str, str] | None = None
    """(dag_id, run_id) of the reservation whose placeholder stands on it."""
    since_ms: int = 0
    """When it began, for the order among idle nodes."""

    @property
    def is_busy(self) -> bool:
        """Tell whether a task's pod is on it at the end of the stretch."""
        return any(each.until_ms is None for each in self.work)


@dataclass(frozen=True, slots=True)
class Hold:
    """What a reservation holds in a node pool."""

    dag_id: str
    run_id: str
    node_pool: str
    warm_nodes: int
    """Nodes kept ready for it without a pod, those that boot included."""
    nodes: int = 0
    """All nodes that it needs."""


def account(stretches: Sequence[Stretch], holds: Iterable[Hold], minimum: Mapping[str, int]) -> list[Charge]:
    """Return the charges for some stretches of nodes' lives.

    ``holds`` are in the order in which their nodes are needed; ``minimum`` is each pool's ``min_nodes``. The charges of
    a node sum up to its stretch's length exactly.
    """
    by_pool: dict[str, list[Stretch]] = defaultdict(list)
    for stretch in stretches:
        by_pool[stretch.node_pool].append(stretch)
    holds_of: dict[str, list[Hold]] = defaultdict(list)
    for hold in holds:
        holds_of[hold.node_pool].append(hold)
    charges: list[Charge] = []
    for pool, nodes in by_pool.items():
        owners = _owners(nodes, holds_of[pool], minimum.get(pool, 0))
        for node in nodes:
            charges.extend(_charges(node, *owners[node.node_uid]))
    return charges


def split(total: int, weights: Sequence[int]) -> list[int]:
    """Return ``total`` in whole parts proportional to the weights, which sum up to it exactly."""
    whole = sum(weights)
    parts, done, weight = [], 0, 0
    for each in weights:
        weight += each
        until = total * weight // whole
        parts.append(until - done)
        done = until
    return parts


class _Left:
    """How many nodes each reservation of a pool still has to get, as nodes are given to them."""

    def __init__(self, holds: Sequence[Hold], nodes: Sequence[Stretch]) -> None:
        busy = Counter(run for node in nodes for run in _runs_on(node))
        self._warm: dict[_Run, int] = {}
        self._all: dict[_Run, int] = {}
        for hold in holds:
            run = (hold.dag_id, hold.run_id)
            self._warm[run] = hold.warm_nodes
            self._all[run] = max(hold.warm_nodes, hold.nodes - busy[run])

    def give(self, run: _Run) -> None:
        """Note that a node is the run's."""
        self._warm[run] = self._warm.get(run, 0) - 1
        self._all[run] = self._all.get(run, 0) - 1

    def has(self, run: _Run) -> bool:
        """Tell whether the run has a reservation in this pool."""
        return run in self._all

    def next_warm(self) -> _Run | None:
        """Return the first run that holds a further warm node."""
        return next((run for run, count in self._warm.items() if count > 0), None)

    def next_boot(self) -> _Run | None:
        """Return the first run that has not all the nodes yet that it needs."""
        return next((run for run, count in self._all.items() if count > 0), None)


def _owners(nodes: Sequence[Stretch], holds: Sequence[Hold], minimum: int) -> dict[str, tuple[_Owner, _Owner]]:
    """Return for each node whose its boot is and whose the time is in which it is usable without a task's pod."""
    left = _Left(holds, nodes)
    spare = minimum - sum(node.is_busy for node in nodes)
    # Those of a placeholder first: they tell exactly. Then the oldest.
    order = sorted(nodes, key=lambda each: (each.held_for is None, each.since_ms, each.node_uid))
    idle: dict[str, _Owner] = {}
    for node in order:
        if node.usable_ms is None or node.is_leaving or not node.is_idle_capacity:
            idle[node.node_uid] = _LEAVING if node.is_leaving else _NOBODY
        elif node.held_for is not None:
            left.give(node.held_for)
            idle[node.node_uid] = (Use.WARM, *node.held_for)
        elif node.is_busy:
            idle[node.node_uid] = _before_work(node, left, minimum)
        elif spare > 0:
            spare -= 1
            idle[node.node_uid] = _MINIMUM
        else:
            idle[node.node_uid] = _next(left, left.next_warm(), Use.WARM)
    owners: dict[str, tuple[_Owner, _Owner]] = {}
    for node in order:
        own = idle[node.node_uid]
        if node.usable_ms is None and not node.is_leaving:
            boot = _next(left, node.held_for or left.next_boot(), Use.BOOT)
            if boot is _NOBODY and spare > 0:
                spare -= 1
                boot = _MINIMUM
        elif own[0] is Use.WARM:
            boot = (Use.BOOT, own[1], own[2])
        else:
            # It became usable within the stretch: booted for the run that came first, else for what it is now.
            first = _first_run(node)
            boot = own if first is None else (Use.BOOT, *first)
        owners[node.node_uid] = (boot, own)
    return owners


def _before_work(node: Stretch, left: _Left, minimum: int) -> _Owner:
    """Return whose a node was, in the stretch in which a task came, until it came: the run's, if it held nodes here."""
    run = _first_run(node)
    if run is not None and left.has(run):
        return (Use.WARM, *run)
    return _MINIMUM if minimum > 0 else _NOBODY


def _first_run(node: Stretch) -> _Run | None:
    first = min(node.work, key=lambda each: each.from_ms, default=None)
    return None if first is None else (first.dag_id, first.run_id)


def _next(left: _Left, run: _Run | None, use: Use) -> _Owner:
    if run is None:
        return _NOBODY
    left.give(run)
    return (use, *run)


def _runs_on(node: Stretch) -> set[_Run]:
    return {(each.dag_id, each.run_id) for each in node.work if each.until_ms is None}


def _charges(node: Stretch, boot: _Owner, idle: _Owner) -> Iterator[Charge]:
    """Yield a node's charges, one for each use and owner."""
    sums: dict[tuple[Use, str, str, str], int] = defaultdict(int)
    usable_ms = node.until_ms if node.usable_ms is None else node.usable_ms
    cuts = {node.from_ms, node.until_ms, usable_ms}
    for each in node.work:
        cuts.update((each.from_ms, node.until_ms if each.until_ms is None else each.until_ms))
    moments = sorted(cut for cut in cuts if node.from_ms <= cut <= node.until_ms)
    for begin, end in pairwise(moments):
        present = [
            each for each in node.work if each.from_ms <= begin and (each.until_ms is None or each.until_ms >= end)
        ]
        if present:
            parts = split(end - begin, [max(1, each.weight) for each in present])
            for each, part in zip(present, parts, strict=True):
                sums[Use.TASK, each.dag_id, each.run_id, each.task_id] += part
        else:
            use, dag_id, run_id = boot if end <= usable_ms else idle
            sums[use, dag_id, run_id, ""] += end - begin
    for (use, dag_id, run_id, task_id), node_ms in sums.items():
        if node_ms:
            yield Charge(node.node_uid, use, node_ms, dag_id, run_id, task_id)
