"""Mapped partitions: one operator expanded over partitions, each a pod of its own."""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.sdk import DAG
from kubernetes.client import models as k8s

from airflow_elastic import ElasticKubernetesPodOperator

DOC = """
### Mapped partitions (class *batch*)

`search` is expanded over six partitions. Its class runs on a node pool that a reactive autoscaler serves: placeholder
pods make the autoscaler bring the nodes before the run.

**Source of the figures**: WfCommons WfInstances (commit f085867), workflow *blast*, instance
`blast-chameleon-small-001`: `split_fasta`, six of its forty `blastall` tasks, `cat_blast`. Durations of `blastall` are
the recorded ones; the two others took less than 0.1 s and are 1 s here.
"""

SEARCH_SECONDS = (9.8, 9.2, 9.9, 9.1, 9.8, 9.6)  # recorded, blastall_ID000002 … 7


def lasts(seconds: float) -> dict[str, object]:
    """Sleep that long on a real cluster; the embedded cluster reads the annotation and needs no process."""
    return {"arguments": [str(seconds)], "annotations": {"airflow-elastic.io/run-seconds": str(seconds)}}


with DAG(
    "mapped_partitions",
    doc_md=DOC,
    schedule=timedelta(minutes=3),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    tags=["example"],
    default_args={
        "image": "busybox:1.37",
        "cmds": ["sleep"],
        "capacity_class": "batch",
        "container_resources": k8s.V1ResourceRequirements(requests={"cpu": "1", "memory": "1Gi"}),
        "get_logs": False,
        "retries": 1,
        "retry_delay": timedelta(seconds=5),
    },
):
    split = ElasticKubernetesPodOperator(task_id="split", **lasts(1.0))
    search = ElasticKubernetesPodOperator.partial(task_id="search").expand_kwargs(
        [lasts(seconds) for seconds in SEARCH_SECONDS]
    )
    join = ElasticKubernetesPodOperator(task_id="join", **lasts(1.0))
    split >> search >> join
