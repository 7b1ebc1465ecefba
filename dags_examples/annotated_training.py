"""Training: every run asks for its own capacity by annotation, before its wide step could be foreseen."""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.sdk import DAG, Param
from kubernetes.client import models as k8s

from airflow_elastic import ElasticKubernetesPodOperator

DOC = """
### Training with a per-run annotation (class *batch*)

Its wide step needs two nodes, and no run should wait for the second one: the param `elastic` asks for both from the
start of the run. A run triggered by hand may ask for something else:
`airflow dags trigger annotated_training --conf '{"elastic": {"nodes": 1, "class": "batch"}}'`.

**Source of the figures**: WfCommons WfInstances (commit f085867), workflow *scrnaseq* (nf-core, Nextflow), instance
`scrnaseq-dirt02-001`: STAR_GENOMEGENERATE (128 s), two STAR_ALIGN (491 s and 637 s; 2.3 GB and 1.9 GB of memory),
MTX_TO_H5AD with CONCAT_H5AD (8 s). Durations are the recorded ones divided by 25; the last one is 2 s.
"""

SCALE = 1 / 25


def lasts(recorded_seconds: float) -> dict[str, object]:
    """Sleep that long on a real cluster; the embedded cluster reads the annotation and needs no process."""
    seconds = f"{recorded_seconds * SCALE:.1f}"
    return {"arguments": [seconds], "annotations": {"airflow-elastic.io/run-seconds": seconds}}


def needs(cpu: str, memory: str) -> k8s.V1ResourceRequirements:
    return k8s.V1ResourceRequirements(requests={"cpu": cpu, "memory": memory})


with DAG(
    "annotated_training",
    doc_md=DOC,
    schedule=timedelta(minutes=3),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    params={
        "elastic": Param(
            {"nodes": 2, "class": "batch"}, type="object", description="Capacity that the run asks for itself"
        )
    },
    tags=["example"],
    default_args={
        "image": "busybox:1.37",
        "cmds": ["sleep"],
        "capacity_class": "batch",
        "get_logs": False,
        "retries": 1,
        "retry_delay": timedelta(seconds=5),
    },
):
    prepare = ElasticKubernetesPodOperator(task_id="prepare", container_resources=needs("1", "2Gi"), **lasts(128.0))
    train_small = ElasticKubernetesPodOperator(
        task_id="train_small", container_resources=needs("3", "3Gi"), **lasts(491.0)
    )
    train_large = ElasticKubernetesPodOperator(
        task_id="train_large", container_resources=needs("3", "3Gi"), **lasts(637.0)
    )
    publish = ElasticKubernetesPodOperator(task_id="publish", container_resources=needs("1", "1Gi"), **lasts(50.0))
    prepare >> [train_small, train_large] >> publish
