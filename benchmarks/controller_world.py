"""The installation that ``benchmarks/controller.py`` measures: an Airflow database and a cluster of a given size.

DAGs of 50 elastic pod tasks in five stages, hourly with starts spread over the hour, serialized by Airflow itself (a
few different ones, then copied under other names). A share of them has a run under way: its first task is done, the
eight of the second stage wait deferred for their pods, which run on nodes.
"""

from __future__ import annotations

import json
import pickle
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

STAGES = (1, 8, 20, 20, 1)
TASKS = sum(STAGES)
VARIANTS = 5
POOL_LABEL = "airflow-elastic.io/node-pool"
POOL_PATH = "/apis/embedded.airflow-elastic.io/v1/nodepools/elastic"
PODS_ON_A_NODE = 4

CAPACITY_FILE = """
version: 1
mode: manage
node_pools:
  elastic:
    selector: {{airflow-elastic.io/node-pool: elastic}}
    shape: {{cpu: "8", memory: 32Gi, pods: 58}}
    min_nodes: {nodes}
    max_nodes: {most}
    provider: scale
    provider_options: {{group: embedded.airflow-elastic.io, version: v1, plural: nodepools, name: elastic}}
classes:
  burst: {{node_pools: [elastic], airflow_pool: burst, slot_shape: {{cpu: "1", memory: 4Gi}}, evictable: true}}
"""

_NAME, _MINUTE = "dag_name_of_the_variant", "59 23 31 12 *"


def names(stage: int) -> list[str]:
    """Return the task ids of a stage."""
    return [f"s{stage}t{number}" for number in range(STAGES[stage])]


def requests(variant: int, number: int) -> dict[str, str]:
    """Return what one task asks for."""
    return {"cpu": f"{500 * (1 + (variant + number) % 4)}m", "memory": f"{1 + (variant + number) % 3}Gi"}


def variants() -> list[str]:
    """Return serialized DAGs as the dag-processor would write them, as JSON text."""
    from airflow.sdk import DAG
    from airflow.serialization.serialized_objects import LazyDeserializedDAG
    from kubernetes.client import models as k8s

    from airflow_elastic.operators.pod import ElasticKubernetesPodOperator

    made = []
    for variant in range(VARIANTS):
        with DAG(_NAME, schedule=_MINUTE, start_date=datetime(2026, 1, 1, tzinfo=UTC), catchup=False) as dag:
            before: list[Any] = []
            for stage in range(len(STAGES)):
                tasks = [
                    ElasticKubernetesPodOperator(
                        task_id=task_id,
                        image="busybox",
                        cmds=["sleep", "60"],
                        deferrable=True,
                        container_resources=k8s.V1ResourceRequirements(requests=requests(variant, number)),
                    )
                    for number, task_id in enumerate(names(stage))
                ]
                for number, task in enumerate(tasks):
                    task.set_upstream(before if STAGES[stage] == 1 else before[number % len(before)])
                before = tasks
        dag.relative_fileloc = "benchmark.py"
        made.append(json.dumps(LazyDeserializedDAG.from_dag(dag).data))
    return made


def fill(engine: Any, dags: int, under_way: float, now: float) -> None:
    """Create Airflow's tables and ours in an empty database and write the installation into them."""
    from airflow.models import import_all_models
    from airflow.models.base import Base
    from sqlalchemy import insert

    from airflow_elastic.airflow_db.tables import metadata

    import_all_models()
    Base.metadata.create_all(engine)
    metadata.create_all(engine)
    texts = variants()
    with engine.begin() as connection:
        tables = Base.metadata.tables
        connection.execute(insert(tables["dag_bundle"]).values(name="benchmark"))
        for pool, slots in (("default_pool", 128), ("burst", 0)):
            connection.execute(insert(tables["slot_pool"]).values(pool=pool, slots=slots, include_deferred=True))
        for start in range(0, dags, 200):
            numbers = range(start, min(dags, start + 200))
            rows = _Rows(under_way * dags, now, texts)
            for number in numbers:
                rows.add(number)
            for table, values in rows.by_table.items():
                if values:
                    connection.execute(insert(tables[table]), values)
    if engine.dialect.name == "postgresql":
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("ANALYZE")


@dataclass
class _Rows:
    active: float
    now: float
    texts: list[str]
    by_table: dict[str, list[dict[str, Any]]] = field(
        default_factory=lambda: {t: [] for t in ("dag", "dag_version", "serialized_dag", "dag_run", "task_instance")}
    )

    def add(self, number: int) -> None:
        dag_id, minute, version = f"dag{number:05}", (number * 7) % 60, uuid.uuid4()
        at = datetime.fromtimestamp(self.now, UTC).replace(minute=minute, second=0, microsecond=0)
        following = at if at.timestamp() > self.now else at + timedelta(hours=1)
        self.by_table["dag"].append(
            {
                "dag_id": dag_id, "is_paused": False, "is_stale": False, "bundle_name": "benchmark", "owners": "me",
                "timetable_type": "CronTriggerTimetable", "max_active_tasks": 16, "max_active_runs": 16,
                "max_consecutive_failed_dag_runs": 0, "has_task_concurrency_limits": False, "next_dagrun": following,
                "next_dagrun_data_interval_start": following, "next_dagrun_data_interval_end": following,
                "next_dagrun_create_after": following, "fileloc": "/dags/benchmark.py",
            }
        )  # fmt: skip
        self.by_table["dag_version"].append({"id": version, "version_number": 1, "dag_id": dag_id})
        text = self.texts[number % VARIANTS].replace(_NAME, dag_id).replace(_MINUTE, f"{minute} * * * *")
        self.by_table["serialized_dag"].append(
            {"dag_id": dag_id, "data": json.loads(text), "dag_hash": uuid.uuid4().hex, "dag_version_id": version}
        )
        if number < self.active:
            self._run(dag_id, version)

    def _run(self, dag_id: str, version: uuid.UUID) -> None:
        began = datetime.fromtimestamp(self.now - 100, UTC)
        self.by_table["dag_run"].append(
            {
                "dag_id": dag_id, "run_id": "under_way", "run_type": "manual", "state": "running", "conf": {},
                "run_after": began, "queued_at": began, "start_date": began, "clear_number": 0, "log_template_id": None,
            }
        )  # fmt: skip
        states = {0: "success", 1: "deferred"}
        for stage in range(len(STAGES)):
            for task_id in names(stage):
                started = began if stage in states else None
                self.by_table["task_instance"].append(
                    {
                        "id": uuid.uuid4(), "task_id": task_id, "dag_id": dag_id, "run_id": "under_way",
                        "map_index": -1, "state": states.get(stage), "try_number": 1 if started else 0, "max_tries": 0,
                        "start_date": started, "scheduled_dttm": started, "pool": "burst", "pool_slots": 1,
                        "queue": "default", "priority_weight": 1, "dag_version_id": version,
                        "executor_config": pickle.loads(pickle.dumps({})),
                    }
                )  # fmt: skip


def change(engine: Any, dags: int, share: float, active: int) -> None:
    """Let a share of the DAGs change their hash, and as many active runs finish a task."""
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.models.taskinstance import TaskInstance
    from sqlalchemy import update

    some = max(1, int(share * dags))
    serialized, task = SerializedDagModel.__table__, TaskInstance.__table__
    with engine.begin() as connection:
        for number in range(dags - some, dags):
            connection.execute(
                update(serialized).where(serialized.c.dag_id == f"dag{number:05}").values(dag_hash=uuid.uuid4().hex)
            )
        for number in range(min(active, some)):
            here = (task.c.dag_id == f"dag{number:05}") & (task.c.state == "deferred")
            first = connection.execute(task.select().where(here).order_by(task.c.task_id).limit(1)).first()
            if first is not None:
                connection.execute(update(task).where(task.c.id == first.id).values(state="success"))


def raw_nodes(count: int, now: float) -> list[dict[str, Any]]:
    """Return Ready nodes as the API server shows them."""
    created = _text(now - 3600)
    return [
        {
            "metadata": {
                "name": f"node{number:05}", "uid": str(uuid.uuid4()), "labels": {POOL_LABEL: "elastic"},
                "creationTimestamp": created, "resourceVersion": str(number + 1),
            },
            "spec": {},
            "status": {
                "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "58"},
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": created}],
            },
        }
        for number in range(count)
    ]  # fmt: skip


def with_ready(node: Mapping[str, Any], *, is_ready: bool, now: float) -> dict[str, Any]:
    """Return the node as it is shown after its kubelet reported, or stopped reporting."""
    condition = {"type": "Ready", "status": "True" if is_ready else "Unknown", "lastTransitionTime": _text(now)}
    return {**node, "metadata": dict(node["metadata"]), "status": {**node["status"], "conditions": [condition]}}


def raw_pods(nodes: int, active: int, now: float) -> Iterator[dict[str, Any]]:
    """Yield the pods of the deferred tasks; those that find no node are Pending."""
    from airflow_elastic.model import labels

    started = _text(now - 60)
    for number in range(active * STAGES[1]):
        run, task = divmod(number, STAGES[1])
        node = number // PODS_ON_A_NODE
        bound = node < nodes
        yield {
            "metadata": {
                "name": f"pod{number:06}", "namespace": "default", "uid": str(uuid.uuid4()),
                "creationTimestamp": started, "labels": {labels.LABEL_CAPACITY_CLASS: "burst"},
                "annotations": {
                    labels.ANNOTATION_DAG_ID: f"dag{run:05}", labels.ANNOTATION_RUN_ID: "under_way",
                    labels.ANNOTATION_TASK_ID: f"s1t{task}", labels.ANNOTATION_MAP_INDEX: "-1",
                },
            },
            "spec": {
                "nodeSelector": {POOL_LABEL: "elastic"}, **({"nodeName": f"node{node:05}"} if bound else {}),
                "containers": [{"name": "base", "resources": {"requests": requests(run % VARIANTS, task)}}],
            },
            "status": {"phase": "Running", "containerStatuses": [{"state": {"running": {"startedAt": started}}}]}
            if bound else {"phase": "Pending"},
        }  # fmt: skip


@dataclass
class Api:
    """An API server that knows one scalable object and says yes to everything else that the controller writes."""

    replicas: int
    writes: int = 0

    def call(
        self, method: str, path: str, body: Any = None, query: Any = None, content_type: str = "application/json"
    ) -> tuple[int, dict[str, Any]]:
        """Answer one request."""
        if method != "GET":
            self.writes += 1
        if path == f"{POOL_PATH}/scale":
            if method == "PATCH":
                self.replicas = int(body["spec"]["replicas"])
            return 200, {"metadata": {"resourceVersion": "1"}, "spec": {"replicas": self.replicas}}
        if method == "GET" and path.endswith(("/pods", "/nodes")):
            return 200, {"items": []}
        return 200, {"metadata": {"name": path.rpartition("/")[2], "resourceVersion": "1"}, **(body or {})}


class Clock:
    """The machine's clocks, moved on by what the benchmark skips."""

    def __init__(self) -> None:
        self.skipped = 0.0

    def wall(self) -> float:
        """Return Unix seconds."""
        return time.time() + self.skipped

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic() + self.skipped


def _text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
