from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from airflow_elastic.controller.loop import Controller
from airflow_elastic.controller.ports import Parts
from airflow_elastic.embedded import EmbeddedCluster
from airflow_elastic.kubernetes.client import ClusterApi
from airflow_elastic.kubernetes.cluster import ClusterView
from airflow_elastic.model.capacity_class import CapacityClass
from airflow_elastic.model.demand import DagShape, DurationEstimate, Run, RunPhase, TaskInstance, TaskSpec, TaskState
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.resources import Resources
from airflow_elastic.model.settings import Mode, ScalingRules, Settings
from airflow_elastic.testing.fakes import FakeAirflow, FakeLeader, FakeSettings, MemoryStore

POOL_LABEL = "airflow-elastic.io/node-pool"
SHAPE = Resources.parse({"cpu": "4", "memory": "8Gi", "pods": 20})
SLOT = Resources.parse({"cpu": "1", "memory": "1Gi"})
SCALING = ScalingRules(
    tick_seconds=0.2,
    max_hold_seconds=60.0,
    scale_in_cooldown_seconds=0.5,
    prewarm_margin_seconds=0.5,
    default_task_seconds=5.0,
    stale_after_seconds=10.0,
)


def scaled_pool(name: str = "elastic", **more: object) -> NodePool:
    options = {"group": "embedded.airflow-elastic.io", "version": "v1", "plural": "nodepools", "name": name}
    given = {
        "max_nodes": 6,
        "boot_seconds": 0.3,
        "boot_seconds_p95": 0.6,
        "provider": "scale",
        "provider_options": tuple(options.items()),
        **more,
    }
    return NodePool(name, ((POOL_LABEL, name),), SHAPE, **given)  # type: ignore[arg-type]


def settings_of(*pools: NodePool, mode: Mode = Mode.MANAGE) -> Settings:
    burst = CapacityClass("burst", tuple(pool.name for pool in pools), "burst", SLOT, evictable=True)
    return Settings(node_pools=pools, classes=(burst,), mode=mode, scaling=SCALING, source="test")


def run_of(
    tasks: int, *, starts_at: float, phase: RunPhase = RunPhase.COMING, state: TaskState = TaskState.NONE
) -> Run:
    specs = tuple(
        TaskSpec(
            f"t{number}",
            needs_node=True,
            capacity_class="burst",
            requests=Resources.parse({"cpu": "2", "memory": "1Gi"}),
            pool="burst",
            pool_slots=2,
            duration=DurationEstimate(5.0, 5.0, 5.0, 9),
        )
        for number in range(tasks)
    )
    instances = tuple(TaskInstance(spec.task_id, state=state, ready_at=starts_at) for spec in specs)
    return Run("etl", "scheduled__2026-01-01T00:00:00+00:00", phase, starts_at, DagShape("etl", specs),
               () if phase is RunPhase.COMING else instances)  # fmt: skip


@dataclass
class World:
    cluster: EmbeddedCluster
    api: ClusterApi
    settings: FakeSettings
    airflow: FakeAirflow
    memory: MemoryStore
    leader: FakeLeader
    views: list[ClusterView] = field(default_factory=list)

    def controller(self, view: ClusterView | None = None) -> Controller:
        """A new process: own view, nothing remembered but what store and cluster hold."""
        if view is None:
            view = ClusterView()
            view.start(self.api, watch_seconds=5.0)
            self.views.append(view)
        controller = Controller(Parts(self.settings, view, self.api, self.airflow, self.memory, self.leader))
        wait_until(lambda: view.age_seconds() < 5.0)
        return controller

    def nodes(self) -> list[dict]:  # type: ignore[type-arg]
        return self.api.call("GET", "/api/v1/nodes")[1]["items"]

    def placeholders(self) -> list[dict]:  # type: ignore[type-arg]
        query = {"labelSelector": "airflow-elastic.io/placeholder=true"}
        return self.api.call("GET", "/api/v1/pods", query=query)[1]["items"]

    def replicas(self, pool: str = "elastic") -> int:
        path = f"/apis/embedded.airflow-elastic.io/v1/nodepools/{pool}/scale"
        return self.api.call("GET", path)[1]["spec"]["replicas"]

    def ticks(self, controller: Controller, until: Callable[[], bool], seconds: float = 8.0) -> None:
        """Tick as the loop does until something holds."""
        end = time.monotonic() + seconds
        while not until():
            assert time.monotonic() < end, "it did not come about"
            controller.tick()
            self.views[-1].wait(0.1)


def wait_until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.01)
