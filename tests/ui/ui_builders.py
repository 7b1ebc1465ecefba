"""Makes published status documents from model objects, for the page's tests and for `ui_preview.py`."""

from __future__ import annotations

import random

from airflow_elastic.model.capacity_class import CapacityClass
from airflow_elastic.model.demand import (
    DagShape,
    DurationEstimate,
    Run,
    RunPhase,
    TaskInstance,
    TaskKey,
    TaskSpec,
    TaskState,
)
from airflow_elastic.model.node_pool import CapacityType, NodePool
from airflow_elastic.model.plan import NodePoolForecast, Plan, Refusal, RunForecast, SetNodes, SetSlots
from airflow_elastic.model.reasons import Reason, ReasonCode
from airflow_elastic.model.reservation import Reservation, ReservationState
from airflow_elastic.model.resources import Resources
from airflow_elastic.model.settings import Mode, Settings
from airflow_elastic.model.snapshot import AirflowPool, Node, NodePoolState, Pod, PodPhase, Snapshot
from airflow_elastic.model.status import ControllerInfo, status_document

SHAPE = Resources.of(cpu=4000, memory=8 * 2**30, pods=20)
SLOT = Resources.of(cpu=1000, memory=2**30)
HOSTILE = "<img src=x onerror=alert(1)>"


def settings(mode: Mode = Mode.MANAGE, max_nodes: int = 6) -> Settings:
    return Settings(
        node_pools=(
            NodePool("fixed", (("pool", "fixed"),), SHAPE, 2, 2, 40, 80, 0.65, CapacityType.RESERVED, "none"),
            NodePool("elastic", (("pool", "elastic"),), SHAPE, 0, max_nodes, 40, 95, 1.0, provider="scale"),
            NodePool("spot-large", (("pool", "spot"),), SHAPE, 0, 8, 70, 180, 0.42, CapacityType.SPOT),
        ),
        classes=(
            CapacityClass("core", ("fixed",), "core", SLOT),
            CapacityClass("burst", ("elastic", "spot-large"), "burst", SLOT, evictable=True),
        ),
        mode=mode,
        default_class="burst",
        source="/opt/airflow/config/capacity.yaml",
    )


def document(now: float, *, nodes: int = 4, mode: Mode = Mode.MANAGE, error: str = "", frozen: bool = False) -> dict:
    """A busy installation at ``now`` with ``nodes`` elastic nodes."""
    chance = random.Random(7)
    stated = settings(mode, max_nodes=max(6, nodes + nodes // 4))
    machines = [
        Node(f"fixed-{index}", "fixed", SHAPE, True, created_at=now - 86400, usable_since=now - 86300)
        for index in (1, 2)
    ]
    pods = [_pod(f"core-{index}", f"fixed-{1 + index % 2}", "core") for index in range(5)]
    for index in range(nodes):
        name = f"elastic-{index:04x}"
        kind = chance.random() if nodes > 8 else (0.1, 0.3, 0.72, 0.85)[index % 4]
        booting, bad, releasing = 0.7 <= kind < 0.8, 0.8 <= kind < 0.83, 0.83 <= kind < 0.88
        machines.append(Node(
            name, "elastic", SHAPE, not booting and not bad,
            "NotReady: kubelet stopped posting status" if bad else "NotReady: it boots" if booting else "",
            now - 1400 + index, None if booting else now - 1300 + index, is_booting=booting, is_releasing=releasing,
        ))  # fmt: skip
        if kind < 0.5:
            pods += [_pod(f"task-{index}-{each}", name, "burst") for each in range(1 + int(kind * 7))]
        elif kind < 0.6:
            pods.append(Pod(f"hold-{index}", "default", SHAPE, PodPhase.RUNNING, name, placeholder_of="abc"))
    owner = TaskKey("billing_daily", _run_id(now - 340), "task_1")
    pods.append(Pod("billing", "default", SLOT, PodPhase.RUNNING, "fixed-1", owner, "core", started_at=now - 65))
    owner = TaskKey("billing_daily", _run_id(now - 340), "task_2")
    pods.append(Pod("billing-2", "default", SLOT, PodPhase.PENDING, "", owner, "burst", unschedulable_since=now - 12))
    snapshot = Snapshot(
        now, stated, tuple(machines), tuple(pods),
        (AirflowPool("core", 8, running=2, deferred=3), AirflowPool("burst", 18, 3, 2, 6, 9),
         AirflowPool("default_pool", 128, 1)),
        (_run("billing_daily", now - 340, 12, now), _run("ml_features", now - 55, 30, now)),
        (NodePoolState("elastic", 5, 1, now - 12),
         NodePoolState("spot-large", failure="spot-large: stock-out in zone b (InsufficientInstanceCapacity)",
                       failed_until=now + 240)),
        boot=(("elastic", DurationEstimate(31, 38, 61, 42)),),
    )  # fmt: skip
    plan = Plan(
        actions=(SetNodes("elastic", 5, 4, 2, Reason.of(
            ReasonCode.PREWARM, dag_id="nightly_etl", run_id=_run_id(now + 75), nodes=3, node_pool="elastic",
            needed="00:15", boot_seconds=61)),
            SetSlots("burst", 12, 18, Reason.of(
                ReasonCode.SLOTS_FOLLOW_NODES, slots=12, airflow_pool="burst", nodes=3)),
        ),
        refusals=(Refusal("spot-large", Reason.of(
            ReasonCode.PROVIDER_FAILED, node_pool="spot-large", failure="stock-out in zone b")),
            Refusal("ml_features.train_wide", Reason.of(
                ReasonCode.IMPOSSIBLE_TASK, task="ml_features.train_wide", requests="cpu 16", node_pools="elastic",
                shape="cpu 4, memory 8Gi"))),
        reservations=tuple(_reservations(now)),
        node_pools=(NodePoolForecast("fixed", ((now, 2),), 2),
                    NodePoolForecast("elastic", ((now, 3), (now + 60, 5), (now + 78, 6)), 5),
                    NodePoolForecast("spot-large", ((now, 0),), 0)),
        runs=tuple(_forecasts(now)),
        usable_slots=(("core", 8), ("burst", 12)),
        kept=(Refusal("elastic-0001", Reason.of(
            ReasonCode.KEPT_SOON_NEEDED, node="elastic-0001", node_pool="elastic", needed_by="nightly_etl",
            in_seconds=75, hold_seconds=90)),),
        frozen=Reason.of(ReasonCode.FROZEN_CLUSTER, age_seconds=74, limit_seconds=60) if frozen else None,
    )  # fmt: skip
    return status_document(snapshot, plan, ControllerInfo("airflow-scheduler-0:4711", now - 7260, error, 0.018))


def decisions(now: float) -> list[dict]:
    rows = [
        (3, "nodes", "elastic", "PREWARM", "nightly_etl needs 3 node(s) of elastic; they are asked for now", True),
        (4, "slots", "burst", "SLOTS_DOWN_BEFORE_NODES", "12 slot(s) of burst fit once 1 node(s) have gone", True),
        (21, "nodes", "elastic", "RELEASE_NO_DOWNSTREAM", "no coming task needs elastic-0003 of elastic", True),
        (65, "refusal", "spot-large", "PROVIDER_FAILED", "spot-large brings no node now: stock-out", False),
        (140, "refusal", HOSTILE, "UNKNOWN_CLASS", f"{HOSTILE} names the capacity class 'gpu' (core, burst)", False),
    ]
    return [
        {"at": now - ago, "kind": kind, "about": about, "code": code, "sentence": sentence, "applied": applied}
        for ago, kind, about, code, sentence, applied in rows
    ]


def _run_id(at: float) -> str:
    return f"scheduled__{int(at)}"


def _pod(name: str, node: str, capacity_class: str) -> Pod:
    return Pod(name, "default", SLOT, PodPhase.RUNNING, node, capacity_class=capacity_class)


def _run(dag_id: str, at: float, tasks: int, now: float) -> Run:
    states = [TaskState.SUCCESS, TaskState.DEFERRED, TaskState.RUNNING, TaskState.SCHEDULED, TaskState.NONE]
    specs = tuple(
        TaskSpec(f"task_{index}", needs_node=True, capacity_class="burst", pool="burst", pool_slots=2)
        for index in range(tasks)
    )
    instances = tuple(TaskInstance(f"task_{index}", state=states[index % 5]) for index in range(tasks))
    return Run(dag_id, _run_id(at), RunPhase.ACTIVE, at, DagShape(dag_id, specs), instances)


def _forecasts(now: float) -> list[RunForecast]:
    rows = [
        ("nightly_etl", 75, "elastic", 3, 78, 10, 240), ("forecast_hourly", 300, "spot-large", 3, 305, 120, 700),
        ("billing_daily", 610, "elastic", 2, 620, 555, 900), (HOSTILE, 900, "elastic", 4, 905, 840, 1490),
        ("a_dag_with_a_name_that_is_far_longer_than_any_column_should_show", 1100, "elastic", 1, 1130, 1065, 1800),
    ]  # fmt: skip
    return [
        RunForecast(dag, _run_id(now + at), now + at, pool, nodes, now + needed, now + ask, now + until)
        for dag, at, pool, nodes, needed, ask, until in rows
    ]


def _reservations(now: float) -> list[Reservation]:
    states = [ReservationState.WARMING, ReservationState.FAILED, ReservationState.PLANNED, ReservationState.PLANNED]
    whys = ["the first of its nodes boots", "spot-large: stock-out in zone b", "", "it will need 4 nodes at 00:30"]
    return [
        Reservation(each.dag_id, each.run_id, each.node_pool, each.nodes, state, each.needed_at, each.until_at,
                    each.ask_at, now - 5 if state.holds_capacity else None, each.needed_at + 3600,
                    2 if state is ReservationState.WARMING else 0, now - 5, why)
        for each, state, why in zip(_forecasts(now), states, whys, strict=False)
    ]  # fmt: skip
