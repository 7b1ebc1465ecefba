"""Observe: one frozen snapshot from the watches, Airflow's database, the providers and what is remembered."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from airflow_elastic.controller.complaints import Complaints, sentence_of
from airflow_elastic.controller.learning import Learner
from airflow_elastic.controller.owners import OwnerResolver
from airflow_elastic.controller.ports import Airflow, AirflowLook, Cluster
from airflow_elastic.errors import TemporaryError
from airflow_elastic.model.reservation import Reservation
from airflow_elastic.model.settings import Settings
from airflow_elastic.model.snapshot import NodePoolState, PlannerMemory, Pod, Snapshot
from airflow_elastic.providers.base import PoolFacts, Provider

__all__ = ["Observation", "Observer"]

_STATE_LIMIT_SECONDS = 60.0
"""A provider that has not answered for longer is shown as failing."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The snapshot, and the same by node pool for the providers."""

    snapshot: Snapshot
    facts: dict[str, PoolFacts]
    problems: tuple[str, ...] = ()


@dataclass(slots=True)
class _PoolMemory:
    state: NodePoolState
    answered_at: float
    held_failure: str = ""
    held_until: float = float("-inf")


@dataclass(slots=True)
class Observer:
    """Remembers the last good answer of each side, with its age."""

    cluster: Cluster
    airflow: Airflow
    learner: Learner
    complaints: Complaints
    wall_clock: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    _look: AirflowLook | None = None
    _looked_at: float = float("-inf")
    _pools: dict[str, _PoolMemory] = field(default_factory=dict)
    _owners: OwnerResolver = field(default_factory=OwnerResolver)
    _written: dict[str, int] = field(default_factory=dict)
    """Airflow pool → slots that we wrote since the last look."""

    def look_again(self) -> None:
        """Read Airflow's database anew at the next observation, however young the last look is."""
        self._looked_at = float("-inf")

    def forget(self) -> None:
        """Trust nothing that was read or timed before: the next observation reads all anew."""
        self._looked_at = float("-inf")
        for kept in self._pools.values():
            kept.held_until = float("-inf")

    def facts(self, settings: Settings) -> dict[str, PoolFacts]:
        """Return what the watches show of each node pool now."""
        nodes, pods = self.cluster.nodes(settings), self.cluster.pods(settings)
        now, age = self.wall_clock(), self.cluster.age_seconds()
        return {
            pool.name: PoolFacts(
                now=now,
                pool=pool,
                nodes=tuple(node for node in nodes if node.node_pool == pool.name),
                placeholders=tuple(pod for pod in pods if pod.placeholder_of and pod.node_pools[:1] == (pool.name,)),
                task_pods=tuple(pod for pod in pods if pod.takes_room and _may_use(pod, pool.name, settings)),
                age_seconds=age,
            )
            for pool in settings.node_pools
        }

    def observe(
        self,
        settings: Settings,
        providers: dict[str, Provider],
        memory: PlannerMemory,
        reservations: tuple[Reservation, ...],
        airflow_may_be_old: float = 0.0,
    ) -> Observation:
        """Look at everything once.

        ``airflow_may_be_old``: a look at the database younger than this many seconds is used again.
        """
        look = self._airflow(settings, airflow_may_be_old)
        # The cluster last: it changes fastest, and slots must follow what stands now.
        facts = self.facts(settings)
        states = tuple(self._state(provider, facts[name]) for name, provider in providers.items() if name in facts)
        self.learner.arrivals(self.cluster.take_arrivals())
        self.learner.pods(self._owners.finished(self.cluster.take_finished(), look.runs if look else ()))
        pods = self._owners.pods(self.cluster.pods(settings), look.runs if look else ())
        age = self.monotonic() - self._looked_at
        snapshot = Snapshot(
            now=self.wall_clock(),
            settings=settings,
            nodes=tuple(node for each in facts.values() for node in each.nodes),
            pods=pods,
            airflow_pools=tuple(
                replace(pool, slots=self._written.get(pool.name, pool.slots)) for pool in look.airflow_pools
            )
            if look
            else (),
            runs=look.runs if look else (),
            node_pool_states=states,
            reservations=reservations,
            boot=self.learner.boots(settings),
            memory=memory,
            cluster_age_seconds=self.cluster.age_seconds(),
            airflow_age_seconds=age,
        )
        problems = (*(look.problems if look else ()), *([self.cluster.problem] if self.cluster.problem else []))
        return Observation(snapshot, facts, problems)

    def provider_failed(self, node_pool: str, sentence: str, seconds: float) -> None:
        """Show a failure that a provider reported when it was asked, for a while."""
        kept = self._pools.setdefault(node_pool, _PoolMemory(NodePoolState(node_pool), self.monotonic()))
        kept.held_failure, kept.held_until = sentence, self.wall_clock() + seconds

    def wrote_slots(self, airflow_pool: str, slots: int) -> None:
        """Take our own write into the look that may be used again: the next change is compared with what stands now."""
        self._written[airflow_pool] = slots

    def _airflow(self, settings: Settings, may_be_old: float) -> AirflowLook | None:
        if self._look is not None and self.monotonic() - self._looked_at < may_be_old:
            return self._look
        try:
            look = self.airflow.read(self.wall_clock(), settings, self.learner.profiles)
        except TemporaryError as error:
            self.complaints.failed("reading Airflow's database", error)
            return self._look
        self.complaints.went_well("reading Airflow's database")
        self._look, self._looked_at = look, self.monotonic()
        self._written.clear()
        self.learner.widths(look.runs)
        return look

    def _state(self, provider: Provider, facts: PoolFacts) -> NodePoolState:
        name = provider.pool.name
        place = f"provider {provider.pool.provider} of node pool {name}"
        kept = self._pools.setdefault(name, _PoolMemory(NodePoolState(name), self.monotonic()))
        try:
            kept.state = provider.state(facts)
            kept.answered_at = self.monotonic()
            self.complaints.went_well(place)
        except TemporaryError as error:
            self.complaints.failed(place, error)
            if self.monotonic() - kept.answered_at > _STATE_LIMIT_SECONDS:
                return replace(kept.state, failure=str(error), failed_until=None)
        except Exception as error:
            # Also what a provider did not foresee: one pool's trouble must not keep the others' slots from following.
            self.complaints.failed(place, error)
            return replace(kept.state, failure=sentence_of(error), failed_until=None)
        if kept.held_until > facts.now and not kept.state.failure:
            return replace(kept.state, failure=kept.held_failure, failed_until=kept.held_until)
        return kept.state


def _may_use(pod: Pod, node_pool: str, settings: Settings) -> bool:
    if pod.node_pools:
        return node_pool in pod.node_pools
    capacity_class = settings.capacity_class(pod.capacity_class)
    return capacity_class is not None and node_pool in capacity_class.node_pools
