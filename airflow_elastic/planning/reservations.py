"""Who owns warm capacity: one reservation for each (dag, run, node pool), moved along the table of transitions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from airflow_elastic.model.demand import RunPhase
from airflow_elastic.model.plan import RunForecast, TransitionNote
from airflow_elastic.model.reasons import Reason, ReasonCode
from airflow_elastic.model.reservation import TRANSITIONS, Reservation, ReservationState
from airflow_elastic.model.snapshot import Snapshot
from airflow_elastic.planning.annotations import Hold
from airflow_elastic.planning.demand import Demand, RunDemand
from airflow_elastic.planning.packing import NeedOverTime
from airflow_elastic.planning.pools import PoolView
from airflow_elastic.planning.shapes import PoolNeed
from airflow_elastic.planning.sizing import PoolSize, clock

__all__ = ["Wish", "forecasts", "move", "next_reservations", "wishes_of"]

_S = ReservationState
_Key = tuple[str, str, str]
_SAME_SECONDS = 5.0
"""A forecast that moved by less than this is not worth a new row in the table."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What one run wants of one pool, in absolute times."""

    owner: int
    node_pool: str
    nodes: int
    peak_nodes: int
    needed_at: float
    until_at: float
    hold_seconds: float = 0.0


def wishes_of(
    demand: Demand,
    needs: Sequence[tuple[PoolNeed, ...]],
    placed: NeedOverTime,
    holds: Sequence[Hold],
    views: Mapping[str, PoolView],
    now: float,
) -> list[Wish]:
    """Return what every run wants: where its pods were placed within the window, and its first choice beyond."""
    by_owner = _placed_nodes(demand, placed, views, now)
    held: dict[int, list[Hold]] = defaultdict(list)
    for hold in holds:
        held[hold.owner].append(hold)
    wishes: list[Wish] = []
    for owner, each in enumerate(demand.runs):
        rows: dict[str, Wish] = {}
        for need in needs[owner]:
            nodes = need.first_nodes
            rows[need.node_pool] = Wish(
                owner, need.node_pool, nodes, need.peak_nodes, each.base + need.first, each.base + need.last
            )
        for name, (nodes, first, last) in by_owner.get(owner, {}).items():
            old = rows.get(name)
            rows[name] = Wish(
                owner,
                name,
                nodes,
                max(nodes, old.peak_nodes if old else 0),
                min(first, old.needed_at) if old else first,
                max(last, old.until_at) if old else last,
            )
        for hold in held.get(owner, ()):
            old = rows.get(hold.node_pool)
            rows[hold.node_pool] = Wish(
                owner,
                hold.node_pool,
                max(hold.nodes, old.nodes if old else 0),
                max(hold.nodes, old.peak_nodes if old else 0),
                min(hold.start, old.needed_at) if old else hold.start,
                max(hold.until, old.until_at) if old else hold.until,
                hold.until - hold.start,
            )
        wishes.extend(rows.values())
    return wishes


def _placed_nodes(
    demand: Demand, placed: NeedOverTime, views: Mapping[str, PoolView], now: float
) -> dict[int, dict[str, tuple[int, float, float]]]:
    """Return (nodes, first start, last end) by run and pool of what was placed within each pool's lead."""
    found: dict[int, dict[str, tuple[int, float, float]]] = defaultdict(dict)
    rows = np.flatnonzero((placed.row_of_item >= 0) & (demand.owner >= 0))
    seen: dict[tuple[int, str], set[int]] = defaultdict(set)
    owners, places = demand.owner[rows].tolist(), placed.row_of_item[rows].tolist()
    starts, ends = demand.starts[0, rows].tolist(), demand.ends[2, rows].tolist()
    for row, owner, place, start, end in zip(rows.tolist(), owners, places, starts, ends, strict=True):
        name = placed.pool_of_item[row]
        if start <= now + views[name].lead_seconds:
            seen[owner, name].add(place)
            _, first, last = found[owner].get(name, (0, start, end))
            found[owner][name] = (len(seen[owner, name]), min(first, start), max(last, end))
    return found


def move(reservation: Reservation, state: ReservationState, now: float) -> Reservation:
    """Return the reservation in its next state.

    Raises:
        ValueError: the table of transitions has no such edge.
    """
    why = TRANSITIONS.get((reservation.state, state))
    if why is None:
        raise ValueError(
            f"reservation {reservation.id} cannot go from {reservation.state} to {state}: no such transition"
        )
    return replace(reservation, state=state, why=why, changed_at=now)


class _Book:
    """The reservations of one plan, with the notes of what changed."""

    def __init__(self, snapshot: Snapshot, demand: Demand, sizes: Mapping[str, PoolSize]) -> None:
        self.snapshot, self.demand, self.sizes = snapshot, demand, sizes
        self.now = snapshot.now
        self.scaling = snapshot.settings.scaling
        self.notes: list[TransitionNote] = []
        self.usable_taken: dict[str, int] = defaultdict(int)
        self.warm_left = {name: size.warm for name, size in sizes.items()}

    def note(self, reservation: Reservation, code: ReasonCode, **figures: object) -> None:
        reason = Reason.of(code, dag_id=reservation.dag_id, run_id=reservation.run_id,
                           node_pool=reservation.node_pool, **figures)  # fmt: skip
        about = f"{reservation.dag_id} {reservation.run_id}"
        self.notes.append(TransitionNote(reservation.id, about, reason))

    def go(self, reservation: Reservation, state: ReservationState) -> Reservation:
        moved = move(reservation, state, self.now)
        if state is _S.EXPIRED:
            self.note(
                moved,
                ReasonCode.RESERVATION_EXPIRED,
                nodes=moved.nodes,
                max_hold_seconds=max(moved.expires_at - max(moved.needed_at, moved.asked_at or 0.0), 0.0),
            )
        else:
            change = f"{reservation.state} → {state} ({moved.why})"
            self.note(moved, ReasonCode.RESERVATION_CHANGED, change=change)
        return moved

    def hold_seconds(self, wish: Wish | None) -> float:
        limits = self.snapshot.settings.limits
        asked = min(wish.hold_seconds, limits.max_hold_seconds) if wish else 0.0
        return max(self.scaling.max_hold_seconds, asked)

    def open(self, each: RunDemand, wish: Wish, view: PoolView) -> Reservation:
        reservation = Reservation(
            dag_id=each.run.dag_id,
            run_id=each.run.run_id,
            node_pool=wish.node_pool,
            nodes=wish.nodes,
            state=_S.PLANNED,
            needed_at=wish.needed_at,
            until_at=wish.until_at,
            ask_at=wish.needed_at - view.lead_seconds,
            expires_at=max(wish.needed_at, self.now) + self.hold_seconds(wish),
            changed_at=self.now,
            why="its run will need these nodes",
        )
        self.note(
            reservation,
            ReasonCode.RESERVATION_PLANNED,
            nodes=wish.nodes,
            needed=clock(wish.needed_at),
            ask=clock(max(reservation.ask_at, self.now)),
        )
        return reservation

    def refresh(self, old: Reservation, wish: Wish, view: PoolView) -> Reservation:
        """Follow the forecast: a run that is late or early shifts its reservation."""
        is_asked = old.asked_at is not None
        # The moment of need only moves while it lies ahead; else a late run would hold for ever.
        needed_at = wish.needed_at if old.needed_at > self.now else old.needed_at
        near = (
            old.nodes == wish.nodes
            and abs(old.needed_at - needed_at) < _SAME_SECONDS
            and abs(old.until_at - wish.until_at) < max(_SAME_SECONDS, 0.2 * (wish.until_at - self.now))
        )
        if near:
            return old
        expires_at = old.expires_at
        if old.needed_at > self.now:
            expires_at = max(needed_at, old.asked_at or self.now) + self.hold_seconds(wish)
        return replace(
            old,
            nodes=wish.nodes,
            needed_at=needed_at,
            until_at=wish.until_at,
            ask_at=old.ask_at if is_asked else needed_at - view.lead_seconds,
            expires_at=expires_at,
        )

    def advance(self, old: Reservation, wish: Wish, is_used: bool) -> Reservation:
        """Move a reservation as far as the world has moved."""
        size = self.sizes[old.node_pool]
        view, now = size.view, self.now
        each = old
        if is_used:
            longest = self.hold_seconds(wish)
            if each.expires_at - now < 0.9 * longest:  # in use: the longest hold begins anew
                each = replace(each, expires_at=now + longest)
            if each.state is _S.FAILED:
                each = self.go(self._ask(each), _S.REQUESTED)
            return each if each.state is _S.IN_USE else self.go(each, _S.IN_USE)
        may_ask = view.can_grow and self.snapshot.settings.mode.value == "manage"
        due = now >= each.ask_at
        # Nodes that earlier runs count on are not this one's, unless all that the pool is to have stand already.
        enough = len(view.usable) >= max(min(size.target, self.usable_taken[view.name] + each.nodes), 1)
        if due:
            self.usable_taken[view.name] += each.nodes
        if each.state is _S.FAILED:
            return self.go(self._ask_again(each, wish), _S.REQUESTED) if may_ask and due else each
        if each.state is _S.PLANNED and due:
            if enough:
                return self.go(each, _S.READY)
            if may_ask:
                each = self.go(self._ask(each), _S.REQUESTED)
        if each.state in (_S.REQUESTED, _S.WARMING):
            if enough:
                return self.go(each, _S.READY)
            if view.failure and not view.booting:
                return self.go(each, _S.FAILED)
            if each.state is _S.REQUESTED and (view.booting or view.coming):
                return self.go(each, _S.WARMING)
        if each.state is _S.READY and not enough:
            return self.go(each, _S.WARMING)
        return each

    def with_warm(self, reservation: Reservation, occupied: int) -> Reservation:
        """Note how many of the pool's warm nodes are its own: those of its nodes that no pod of its run takes."""
        warm = 0
        if reservation.state.holds_capacity:
            warm = min(max(reservation.nodes - occupied, 0), self.warm_left[reservation.node_pool])
            self.warm_left[reservation.node_pool] -= warm
        return reservation if reservation.warm_nodes == warm else replace(reservation, warm_nodes=warm)

    def _ask_again(self, each: Reservation, wish: Wish) -> Reservation:
        """Follow the forecast again, with a new longest hold: the last one went by without a node."""
        needed_at = max(wish.needed_at, self.now)
        return replace(
            each,
            nodes=wish.nodes,
            needed_at=needed_at,
            until_at=wish.until_at,
            asked_at=self.now,
            expires_at=needed_at + self.hold_seconds(wish),
        )

    def _ask(self, each: Reservation) -> Reservation:
        return replace(each, asked_at=self.now if each.asked_at is None else each.asked_at)


def next_reservations(
    snapshot: Snapshot, demand: Demand, wishes: Iterable[Wish], sizes: Mapping[str, PoolSize]
) -> tuple[tuple[Reservation, ...], tuple[TransitionNote, ...]]:
    """Return every reservation after this plan, and a note for each change.

    One that is over is kept for one more plan, so that its end is seen; an expired one as long as its run could still
    want the nodes, so that it is not opened again.
    """
    book = _Book(snapshot, demand, sizes)
    olds = {(each.dag_id, each.run_id, each.node_pool): each for each in snapshot.reservations}
    wanted: dict[_Key, Wish] = {}
    for wish in wishes:
        run = demand.runs[wish.owner].run
        if wish.node_pool in sizes:
            wanted[run.dag_id, run.run_id, wish.node_pool] = wish
    standing = {each.key for each in demand.runs}
    result: list[Reservation] = []
    for key in sorted({*olds, *wanted}, key=lambda key: _order(key, olds, wanted)):
        if key in wanted:
            found = _next(book, olds.get(key), wanted[key])
        elif key in demand.expired and key[:2] in standing:
            found = olds[key] if olds[key].state is _S.EXPIRED else book.go(olds[key], _S.EXPIRED)
        else:
            found = None if olds[key].state.is_over else book.go(olds[key], _S.RELEASED)
        if found is not None:
            result.append(found)
    return tuple(result), tuple(book.notes)


def _next(book: _Book, old: Reservation | None, wish: Wish) -> Reservation | None:
    """Return the reservation of a run that (still) wants nodes; None while it wants none yet."""
    each, size = book.demand.runs[wish.owner], book.sizes[wish.node_pool]
    bound = each.bound.get(wish.node_pool, ())
    if old is not None and (*each.key, wish.node_pool) in book.demand.expired:
        return old if old.state is _S.EXPIRED else book.go(old, _S.EXPIRED)
    if old is None or old.state in (_S.RELEASED, _S.EXPIRED):
        if wish.nodes <= 0:
            return None
        old = book.open(each, wish, size.view)
    elif old.state.holds_capacity and not bound and wish.needed_at > book.now + size.view.window_seconds:
        # Its next need lies so far ahead that the nodes are given back; the next plan opens it anew for then.
        return book.go(old, _S.RELEASED)
    elif old.state is not _S.FAILED:
        old = book.refresh(old, wish, size.view)
    return book.with_warm(book.advance(old, wish, bool(bound)), len(bound))


def _order(
    key: tuple[str, str, str],
    olds: Mapping[tuple[str, str, str], Reservation],
    wanted: Mapping[tuple[str, str, str], Wish],
) -> tuple[float, tuple[str, str, str]]:
    wish, old = wanted.get(key), olds.get(key)
    return (wish.needed_at if wish else old.needed_at if old else 0.0), key


def forecasts(
    demand: Demand, wishes: Iterable[Wish], views: Mapping[str, PoolView], until: float
) -> tuple[RunForecast, ...]:
    """Return what each run that stands or comes within the horizon will need, soonest first."""
    found = []
    for wish in wishes:
        each = demand.runs[wish.owner]
        if wish.peak_nodes <= 0 or (each.run.phase is RunPhase.COMING and each.run.starts_at > until):
            continue
        lead = views[wish.node_pool].lead_seconds if wish.node_pool in views else 0.0
        found.append(
            RunForecast(
                dag_id=each.run.dag_id,
                run_id=each.run.run_id,
                starts_at=each.run.starts_at,
                node_pool=wish.node_pool,
                nodes=wish.peak_nodes,
                needed_at=wish.needed_at,
                ask_at=wish.needed_at - lead,
                until_at=wish.until_at,
            )
        )
    return tuple(sorted(found, key=lambda each: (each.starts_at, each.dag_id, each.run_id, each.node_pool)))
