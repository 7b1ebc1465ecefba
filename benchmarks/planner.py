"""How long one plan takes and how much memory it needs, by number of DAGs and nodes. Prints a table or JSON.

The world: DAGs of 50 tasks (a chain of five stages, the widest 20 tasks), hourly runs over a horizon of six hours with
starts spread over the hour, a share of the runs under way with their pods on nodes, and idle nodes.
*cold* plans with nothing known of the DAGs; *warm* is the next tick, with the same DAG structures; *next structures*
is a tick after every structure was built anew but equal (a reader that keeps nothing).
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from dataclasses import replace

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
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.resources import Resources
from airflow_elastic.model.settings import Mode, Settings
from airflow_elastic.model.snapshot import AirflowPool, Node, NodePoolState, Pod, PodPhase, Snapshot
from airflow_elastic.planning.planner import plan

NOW = 1_800_000_000.0
GIB = 2**30
SHAPE = Resources.of(cpu=8000, memory=32 * GIB, pods=58)
SLOT = Resources.of(cpu=1000, memory=4 * GIB)
STAGES = (1, 8, 20, 20, 1)


def settings(max_nodes: int) -> Settings:
    """Return one large elastic pool with one class."""
    pool = NodePool("elastic", (("pool", "elastic"),), SHAPE, 0, max_nodes, provider="scale")
    return Settings((pool,), (CapacityClass("burst", ("elastic",), "burst", SLOT),), Mode.MANAGE)


def dag_shape(number: int) -> DagShape:
    """Return a DAG of 50 tasks in five stages."""
    tasks: list[TaskSpec] = []
    before: tuple[str, ...] = ()
    for stage, width in enumerate(STAGES):
        names = tuple(f"s{stage}t{i}" for i in range(width))
        for i, name in enumerate(names):
            requests = Resources.of(cpu=500 * (1 + (number + i) % 4), memory=GIB * (1 + (number + stage) % 3), pods=1)
            seconds = 60.0 + (number * 7 + i * 13) % 240
            upstream = before if stage in (0, 4) else (before[i % len(before)],)
            tasks.append(
                TaskSpec(
                    name,
                    upstream,
                    needs_node=True,
                    capacity_class="burst",
                    requests=requests,
                    pool="burst",
                    duration=DurationEstimate(0.7 * seconds, seconds, 1.8 * seconds, 20),
                )
            )
        before = names
    return DagShape(f"dag{number:05}", tuple(tasks))


def world(dags: int, nodes: int, under_way: float) -> Snapshot:
    """Return the benchmark's snapshot."""
    file = settings(2 * nodes)
    shapes = [dag_shape(i) for i in range(dags)]
    standing = tuple(
        Node(f"node{i:05}", "elastic", SHAPE, True, created_at=NOW - 3600, usable_since=NOW - 3500)
        for i in range(nodes)
    )
    runs: list[Run] = []
    pods: list[Pod] = []
    for i, shape in enumerate(shapes):
        offset = 3600.0 * ((i * 2654435761) % 1_000_003) / 1_000_003
        runs += [
            Run(shape.dag_id, f"scheduled__{h}", RunPhase.COMING, NOW + offset + 3600 * h, shape) for h in range(6)
        ]
        if i < under_way * dags:
            states = {0: TaskState.SUCCESS, 1: TaskState.DEFERRED}
            instances = []
            for spec in shape.tasks:
                stage = int(spec.task_id[1])
                state = states.get(stage, TaskState.NONE)
                instances.append(TaskInstance(spec.task_id, state=state, started_at=NOW - 30 if stage < 2 else None))
                if state is TaskState.DEFERRED and nodes:
                    owner = TaskKey(shape.dag_id, "active", spec.task_id)
                    name = standing[len(pods) // 4 % nodes].name
                    pods.append(
                        Pod(
                            f"pod{len(pods)}", "default", spec.requests, PodPhase.RUNNING, name, owner, "burst",
                            created_at=NOW - 30, started_at=NOW - 20,
                        )
                    )  # fmt: skip
            runs.append(Run(shape.dag_id, "active", RunPhase.ACTIVE, NOW - 100, shape, tuple(instances)))
    state = (NodePoolState("elastic", nodes),)
    return Snapshot(NOW, file, standing, tuple(pods), (AirflowPool("burst", 0),), tuple(runs), state)


def measure(dags: int, nodes: int, under_way: float, repeats: int) -> dict[str, object]:
    """Return the times of one size in seconds."""
    snapshot = world(dags, nodes, under_way)

    def timed(each: Snapshot) -> tuple[float, Snapshot]:
        began = time.perf_counter()
        made = plan(each)
        return time.perf_counter() - began, replace(
            each, now=each.now + 1.0, reservations=made.reservations, memory=made.memory
        )

    cold, following = timed(snapshot)
    warm: list[float] = []
    for _ in range(repeats):
        seconds, following = timed(following)
        warm.append(seconds)
    rebuilt = {run.dag_id: dag_shape(int(run.dag_id[3:])) for run in following.runs}
    again, _ = timed(replace(following, runs=tuple(replace(r, shape=rebuilt[r.dag_id]) for r in following.runs)))
    return {
        "dags": dags,
        "nodes": nodes,
        "runs": len(snapshot.runs),
        "pods": len(snapshot.pods),
        "cold_seconds": round(cold, 3),
        "warm_seconds": round(sorted(warm)[len(warm) // 2], 3),
        "rebuilt_seconds": round(again, 3),
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dags", default="100,1000", help="numbers of DAGs, by comma")
    parser.add_argument("--nodes", default="100,1000", help="numbers of nodes, by comma")
    parser.add_argument("--under-way", type=float, default=0.2, help="share of DAGs with an active run")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", choices=("table", "json"), default="table")
    args = parser.parse_args()
    rows = [
        measure(int(dags), int(nodes), args.under_way, args.repeats)
        for dags in args.dags.split(",")
        for nodes in args.nodes.split(",")
    ]
    if args.output == "json":
        print(json.dumps({"rows": rows}))
        return
    names = list(rows[0])
    print("  ".join(f"{name:>15}" for name in names))
    for row in rows:
        print("  ".join(f"{row[name]!s:>15}" for name in names))


if __name__ == "__main__":
    main()
