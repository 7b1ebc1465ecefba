"""Small worlds for the tests of the simulator."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_elastic.model.capacity_class import CapacityClass
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.resources import Resources
from airflow_elastic.model.settings import Mode, ScalingRules, Settings
from airflow_elastic.simulator.workload import DAY, EPOCH, DagTemplate, PlannedRun, TaskTemplate, Workload

GIB = 2**30
SHAPE = Resources.of(cpu=4000, memory=16 * GIB, pods=110)


def settings(
    boot: float = 60.0, *, max_nodes: int = 50, pools: Sequence[str] = ("burst",), **scaling: float
) -> Settings:
    return Settings(
        tuple(
            NodePool(name, (("pool", name),), SHAPE, 0, max_nodes, boot, boot * 1.5, provider="scale") for name in pools
        ),
        (CapacityClass("burst", tuple(pools), "burst", Resources.of(cpu=1000, memory=2 * GIB)),),
        Mode.MANAGE,
        scaling=ScalingRules(**scaling),
    )


def fan_out(width: int, seconds: float, **more: int) -> DagTemplate:
    tasks = [TaskTemplate("first", (), 20.0)]
    tasks += [TaskTemplate(f"work_{i}", (0,), seconds) for i in range(width)]
    tasks.append(TaskTemplate("last", tuple(range(1, width + 1)), 30.0))
    return DagTemplate("fan_out", tuple(tasks), **more)


def daily(dag: DagTemplate, days: int = 2, train: int = 3, hour: float = 2.0) -> Workload:
    """The DAG once a day, every run as typical."""
    seconds = tuple(task.seconds for task in dag.tasks)
    runs = [
        PlannedRun(dag, f"run_{i}", EPOCH + i * DAY + hour * 3600.0, seconds, is_scheduled=True)
        for i in range(train + days)
    ]
    begin = EPOCH + train * DAY
    return Workload("daily", tuple(runs[:train]), tuple(runs[train:]), begin, begin + days * DAY)
