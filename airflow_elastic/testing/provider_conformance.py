"""The contract of ``providers.base.Provider`` as tests. Subclass it, give a harness, and pytest runs them:

    class TestMine(ProviderConformance):
        @pytest.fixture
        def harness(self):
            with MyHarness() as harness:
                yield harness

The harness owns one node pool with ``min_nodes`` 0 and ``max_nodes`` of at least 3, in which nodes come and go within a
second or two.
"""

# ruff: noqa: D102 - a test's name is its documentation

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import pytest

from airflow_elastic.errors import TemporaryError
from airflow_elastic.model.reservation import reservation_id
from airflow_elastic.model.snapshot import NodePoolState
from airflow_elastic.providers.base import Outcome, PoolFacts, Provider, Target, WarmShare

__all__ = ["ProviderConformance", "ProviderHarness", "share"]

_OWNER = ("etl", "scheduled__2026-01-01T00:00:00+00:00")
_SETTLE_SECONDS = 1.0


class ProviderHarness(Protocol):
    """What the tests need of a world in which the provider works."""

    @property
    def pool_name(self) -> str:
        """Return the node pool's name."""
        ...

    @property
    def max_nodes(self) -> int:
        """Return the node pool's maximum."""
        ...

    def provider(self) -> Provider:
        """Return a new provider object for the pool, as a new process would make it."""
        ...

    def facts(self) -> PoolFacts:
        """Return what the watch sees now."""
        ...

    def run_task(self, node: str = "") -> str:
        """Start a pod of a task, on a node if one is named, wait until it is bound, and return its node."""
        ...

    def leftovers(self) -> list[str]:
        """Return the names of all objects and marks of ours that would outlive the controller."""
        ...

    def silence(self) -> None:
        """From now on the mechanism does not answer."""
        ...


def share(nodes: int, pool: str, *, seconds: float = 600.0) -> WarmShare:
    """Return the warm share of the suite's reservation."""
    return WarmShare(reservation_id(*_OWNER, pool), nodes, time.time() + seconds, *_OWNER)


class ProviderConformance:
    """Every provider passes these."""

    def test_nodes_that_are_asked_for_come(self, harness: ProviderHarness) -> None:
        provider = harness.provider()
        outcome = self._ask(harness, provider, 2)
        assert outcome.done
        assert not outcome.refused
        self._until(lambda: self._usable(harness) == 2)

    def test_what_stands_and_what_comes_add_up_to_what_was_asked(self, harness: ProviderHarness) -> None:
        provider = harness.provider()
        self._ask(harness, provider, 2)
        totals: list[int] = []

        def total() -> int:
            facts = harness.facts()
            return self._total(facts, provider.state(facts))

        def all_there() -> bool:
            totals.append(total())
            return self._usable(harness) == 2

        self._until(lambda: total() == 2)
        self._until(all_there)
        assert self._state(harness, provider).coming_nodes == 0
        # Two views a moment apart may count a node that registers between them twice, or not at all.
        assert min(totals) >= 1
        assert max(totals) <= 3

    def test_asking_again_changes_nothing(self, harness: ProviderHarness) -> None:
        provider = harness.provider()
        self._ask(harness, provider, 2)
        self._ask(harness, provider, 2)
        self._until(lambda: self._usable(harness) == 2)
        assert self._ask(harness, provider, 2) == Outcome()
        self._settle()
        assert len(harness.facts().nodes) == 2

    def test_a_new_process_adopts_what_an_earlier_one_asked_for(self, harness: ProviderHarness) -> None:
        self._ask(harness, harness.provider(), 2)
        successor = harness.provider()
        assert self._ask(harness, successor, 2) == Outcome()
        self._until(lambda: self._usable(harness) == 2)
        self._settle()
        assert len(harness.facts().nodes) == 2

    def test_the_maximum_holds_whatever_is_asked(self, harness: ProviderHarness) -> None:
        provider = harness.provider()
        self._ask(harness, provider, harness.max_nodes + 5)
        self._until(lambda: self._usable(harness) == harness.max_nodes)
        self._settle()
        assert len(harness.facts().nodes) == harness.max_nodes

    def test_less_is_given_back(self, harness: ProviderHarness) -> None:
        provider = harness.provider()
        self._ask(harness, provider, 2)
        self._until(lambda: self._usable(harness) == 2)
        names = sorted(node.name for node in harness.facts().nodes)
        self._ask(harness, provider, 1, release=(names[0],))
        self._until(lambda: [node.name for node in harness.facts().nodes] == [names[1]])
        assert self._usable(harness) == 1

    def test_what_a_task_took_is_not_held_a_second_time(self, harness: ProviderHarness) -> None:
        provider = harness.provider()
        self._ask(harness, provider, 1)
        self._until(lambda: self._usable(harness) == 1)
        harness.run_task()
        self._until(lambda: any(pod.node for pod in harness.facts().task_pods))
        provider.apply(harness.facts(), Target(1))
        self._settle()
        assert len(harness.facts().nodes) == 1
        assert self._state(harness, provider).coming_nodes == 0

    def test_a_node_that_a_task_took_meanwhile_is_kept(self, harness: ProviderHarness) -> None:
        provider = harness.provider()
        self._ask(harness, provider, 1)
        self._until(lambda: self._usable(harness) == 1)
        node = harness.run_task()
        self._until(lambda: any(pod.node for pod in harness.facts().task_pods))
        outcome = provider.apply(harness.facts(), Target(0, release=(node,)))
        assert any(node in sentence for sentence in outcome.refused)
        self._settle()
        assert [each.name for each in harness.facts().nodes if each.usable] == [node]
        assert harness.leftovers() == []

    def test_releasing_a_node_that_is_gone_is_no_error(self, harness: ProviderHarness) -> None:
        outcome = harness.provider().apply(harness.facts(), Target(0, release=("gone-long-ago",)))
        assert not outcome.refused

    def test_looking_changes_nothing(self, harness: ProviderHarness) -> None:
        provider = harness.provider()
        for _ in range(3):
            state = self._state(harness, provider)
        assert state.node_pool == harness.pool_name
        assert (state.coming_nodes, state.failure) == (0, "")
        assert harness.facts().nodes == ()
        assert harness.leftovers() == []

    def test_a_sweep_takes_what_nobody_owns_and_leaves_what_somebody_does(self, harness: ProviderHarness) -> None:
        self._ask(harness, harness.provider(), 2)
        self._until(lambda: self._usable(harness) == 2)
        provider, mine = harness.provider(), share(2, harness.pool_name)
        before = harness.leftovers()
        assert provider.sweep(harness.facts(), {mine.reservation_id}) == Outcome()
        assert harness.leftovers() == before

        def swept() -> bool:
            provider.sweep(harness.facts(), set())
            return harness.leftovers() == []

        self._until(swept)

    def test_silence_is_temporary(self, harness: ProviderHarness) -> None:
        provider = harness.provider()
        facts = harness.facts()
        harness.silence()
        with pytest.raises(TemporaryError):
            provider.apply(facts, Target(1, (share(1, harness.pool_name),)))

    def _ask(self, harness: ProviderHarness, provider: Provider, nodes: int, release: tuple[str, ...] = ()) -> Outcome:
        return provider.apply(harness.facts(), Target(nodes, (share(nodes, harness.pool_name),), release))

    def _state(self, harness: ProviderHarness, provider: Provider) -> NodePoolState:
        return provider.state(harness.facts())

    def _usable(self, harness: ProviderHarness) -> int:
        return sum(node.usable for node in harness.facts().nodes)

    def _total(self, facts: PoolFacts, state: NodePoolState) -> int:
        return len(facts.nodes) + state.coming_nodes

    def _settle(self) -> None:
        """Give a wrong further node the time to show."""
        time.sleep(_SETTLE_SECONDS)

    def _until(self, condition: Callable[[], bool], seconds: float = 10.0) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "it did not come about"
            time.sleep(0.02)
