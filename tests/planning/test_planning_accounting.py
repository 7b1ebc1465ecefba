"""Every millisecond of a node is charged once, however it is cut, and to whom it belongs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_elastic.model.ledger import MS_PER_HOUR, Charge, NodeBill, Use
from airflow_elastic.planning.accounting import Hold, Stretch, Work, account, split

A, B = ("etl", "monday"), ("etl", "tuesday")


def stretch(uid: str = "n1", begin: int = 0, end: int = 1000, **more: object) -> Stretch:
    return Stretch(uid, "elastic", begin, end, **{"usable_ms": -5, **more})  # type: ignore[arg-type]


def work(begin: int, end: int | None = None, run: tuple[str, str] = A, task: str = "load", weight: int = 1) -> Work:
    return Work(*run, task, weight, begin, end)


def sums(charges: list[Charge]) -> dict[tuple[str, ...], int]:
    found: Counter[tuple[str, ...]] = Counter()
    for each in charges:
        found[tuple(part for part in (each.use.value, each.run_id, each.task_id) if part)] += each.node_ms
    return dict(found)


def test_a_node_belongs_to_the_tasks_on_it_in_proportion_to_what_they_asked_for() -> None:
    node = stretch(work=(work(0, 400, weight=1), work(200, None, B, "train", weight=3)))
    assert sums(account([node], (), {})) == {
        ("task", "monday", "load"): 200 + 50,
        ("task", "tuesday", "train"): 150 + 600,
    }


def test_boot_warmth_and_work_of_one_node_are_its_run_s() -> None:
    node = stretch(usable_ms=300, work=(work(700),))
    assert sums(account([node], [Hold(*A, "elastic", 1, 1)], {})) == {
        ("boot", "monday"): 300,
        ("warm", "monday"): 400,
        ("task", "monday", "load"): 300,
    }


def test_warm_nodes_go_to_the_reservations_that_need_them_first() -> None:
    nodes = [stretch(f"n{number}", since_ms=number) for number in range(4)]
    holds = [Hold(*A, "elastic", 2, 2), Hold(*B, "elastic", 1, 1), Hold(*B, "other", 9, 9)]
    charges = {each.node_uid: (each.use, each.run_id) for each in account(nodes, holds, {})}
    assert charges == {
        "n0": (Use.WARM, "monday"),
        "n1": (Use.WARM, "monday"),
        "n2": (Use.WARM, "tuesday"),
        "n3": (Use.UNEXPLAINED, ""),
    }


def test_a_placeholder_tells_exactly_whose_its_node_is() -> None:
    nodes = [stretch("n0"), stretch("n1", held_for=A, since_ms=1)]
    holds = [Hold(*A, "elastic", 1, 1), Hold(*B, "elastic", 1, 1)]
    charges = {each.node_uid: each.run_id for each in account(nodes, holds, {})}
    assert charges == {"n0": "tuesday", "n1": "monday"}


def test_the_minimum_is_made_up_by_busy_nodes_first() -> None:
    busy, idle, more = stretch("busy", work=(work(0),)), stretch("idle", since_ms=1), stretch("more", since_ms=2)
    holds = [Hold(*B, "elastic", 1, 1)]
    found = {each.node_uid: each.use for each in account([busy, idle, more], holds, {"elastic": 2})}
    assert found == {"busy": Use.TASK, "idle": Use.MINIMUM, "more": Use.WARM}


@pytest.mark.parametrize(
    ("node", "use"),
    [
        (stretch(is_leaving=True), Use.LEAVING),
        (stretch(is_leaving=True, usable_ms=None), Use.LEAVING),
        (stretch(is_idle_capacity=False), Use.UNEXPLAINED),
        (stretch(usable_ms=None), Use.UNEXPLAINED),
        (stretch(usable_ms=None, held_for=A), Use.BOOT),
    ],
)
def test_what_a_node_without_tasks_is(node: Stretch, use: Use) -> None:
    (charge,) = account([node], (), {})
    assert (charge.use, charge.node_ms) == (use, 1000)


def test_a_booting_node_is_the_first_run_s_that_lacks_one() -> None:
    nodes = [stretch("busy", work=(work(0),)), stretch("b1", usable_ms=None), stretch("b2", usable_ms=None)]
    holds = [Hold(*A, "elastic", 0, 1), Hold(*B, "elastic", 1, 1)]
    found = {each.node_uid: (each.use, each.run_id) for each in account(nodes, holds, {})}
    assert found["b1"] == (Use.BOOT, "tuesday")  # A's one node is the busy one
    assert found["b2"] == (Use.UNEXPLAINED, "")


def test_a_new_node_of_the_minimum_boots_for_the_minimum() -> None:
    (charge,) = account([stretch(usable_ms=None)], (), {"elastic": 1})
    assert charge.use is Use.MINIMUM


@given(st.integers(0, 10**12), st.lists(st.integers(1, 10**6), min_size=1, max_size=20))
def test_parts_are_whole_and_sum_up(total: int, weights: list[int]) -> None:
    parts = split(total, weights)
    assert sum(parts) == total
    assert all(abs(part - total * weight / sum(weights)) <= 1 for part, weight in zip(parts, weights, strict=True))


moments = st.integers(0, 10_000)
runs = st.sampled_from([A, B, ("ml", "r")])


@st.composite
def lives(draw: st.DrawFn) -> Stretch:
    begin, end = sorted((draw(moments), draw(moments)))
    usable = draw(st.none() | moments)
    pieces = []
    for _ in range(draw(st.integers(0, 4))):
        first, last = sorted((draw(moments), draw(moments)))
        until = draw(st.sampled_from([None, last]))
        pieces.append(work(first, until, draw(runs), draw(st.sampled_from("xyz")), draw(st.integers(0, 10**6))))
    return Stretch(
        "", draw(st.sampled_from(["elastic", "fixed"])), begin, end, usable,
        draw(st.booleans()), draw(st.booleans()), tuple(pieces), draw(st.none() | runs), begin,
    )  # fmt: skip


holds = st.lists(
    st.builds(lambda run, pool, warm, nodes: Hold(*run, pool, warm, nodes), runs, st.sampled_from(["elastic", "fixed"]),
              st.integers(0, 4), st.integers(0, 4)),
    max_size=4,
)  # fmt: skip


@given(st.lists(lives(), max_size=6), holds, st.dictionaries(st.sampled_from(["elastic", "fixed"]), st.integers(0, 4)))
def test_the_charges_of_a_node_are_its_bill(nodes: list[Stretch], held: list[Hold], minimum: dict[str, int]) -> None:
    nodes = [replace(each, node_uid=f"n{number}") for number, each in enumerate(nodes)]
    charges = account(nodes, held, minimum)
    billed = {each.node_uid: each.until_ms - each.from_ms for each in nodes if each.until_ms > each.from_ms}
    charged: Counter[str] = Counter()
    for each in charges:
        assert each.node_ms > 0
        assert bool(each.task_id) == (each.use is Use.TASK)
        assert bool(each.run_id) == (each.use in (Use.TASK, Use.BOOT, Use.WARM))
        charged[each.node_uid] += each.node_ms
    assert charged == billed
    assert len({(c.node_uid, c.use, c.owner, c.task_id) for c in charges}) == len(charges)
    assert charges == account(nodes, held, minimum)


@given(lives(), holds, st.lists(moments, max_size=5))
def test_it_does_not_matter_for_the_tasks_how_a_life_is_cut(node: Stretch, held: list[Hold], at: list[int]) -> None:
    """Work has its times: only whose the idle time was is taken as it is at each look."""
    node = replace(node, node_uid="n")
    cuts = sorted({node.from_ms, node.until_ms, *(cut for cut in at if node.from_ms < cut < node.until_ms)})
    whole = sums(account([node], held, {}))
    pieces: Counter[tuple[str, ...]] = Counter()
    for begin, end in pairwise(cuts):
        pieces.update(sums(account([replace(node, from_ms=begin, until_ms=end)], held, {})))
    assert sum(pieces.values()) == sum(whole.values()) == node.until_ms - node.from_ms
    for key in {*whole, *pieces}:
        if key[0] == "task":
            # Shares are rounded at each cut.
            assert abs(pieces[key] - whole.get(key, 0)) <= 2 * (len(cuts) + 2 * len(node.work))


def test_costs_follow_the_price() -> None:
    bill = NodeBill("n", "node", "elastic", 0.9, 0, 0)
    assert bill.cost_of(MS_PER_HOUR) == 0.9
    assert bill.cost_of(0) == 0.0
