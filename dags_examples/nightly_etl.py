"""A nightly ETL: one task, a wide fan-out, and a narrow tail during which most of its nodes can go."""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.sdk import DAG
from kubernetes.client import models as k8s

from airflow_elastic import ElasticKubernetesPodOperator

DOC = """
### Nightly ETL (class *burst*)

Fan-out over six chunks, then a narrow tail. Nodes for the fan-out stand ready before the run; when the last chunk is
done, all but one of them go, although the run goes on.

**Source of the figures**: WfCommons WfInstances (commit f085867), workflow *epigenomics*, instance
`epigenomics-chameleon-hep-1seq-100k-001`: `fastqSplit`, six of its nine chunks (each of our chunk tasks is the
recorded chain filterContams → sol2sanger → fast2bfq → map of that chunk), the two `mapMerge` and `chr21` as one task,
and `pileup`. Durations are the recorded ones divided by 2.5.
"""

SCALE = 1 / 2.5
CHUNK_SECONDS = (61.34, 52.72, 56.51, 60.18, 59.07, 58.41)  # recorded, per chunk


def lasts(recorded_seconds: float) -> dict[str, object]:
    """Sleep that long on a real cluster; the embedded cluster reads the annotation and needs no process."""
    seconds = f"{recorded_seconds * SCALE:.1f}"
    return {"arguments": [seconds], "annotations": {"airflow-elastic.io/run-seconds": seconds}}


def needs(cpu: str, memory: str) -> k8s.V1ResourceRequirements:
    return k8s.V1ResourceRequirements(requests={"cpu": cpu, "memory": memory})


with DAG(
    "nightly_etl",
    doc_md=DOC,
    schedule=timedelta(minutes=3),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    tags=["example"],
    default_args={
        "image": "busybox:1.37",
        "cmds": ["sleep"],
        "capacity_class": "burst",
        "get_logs": False,
        "retries": 1,
        "retry_delay": timedelta(seconds=5),
    },
):
    split = ElasticKubernetesPodOperator(task_id="split", container_resources=needs("1", "1Gi"), **lasts(1.35))
    merge = ElasticKubernetesPodOperator(task_id="merge", container_resources=needs("1", "2Gi"), **lasts(11.61))
    pileup = ElasticKubernetesPodOperator(task_id="pileup", container_resources=needs("2", "2Gi"), **lasts(30.52))
    for number, seconds in enumerate(CHUNK_SECONDS, start=1):
        chunk = ElasticKubernetesPodOperator(
            task_id=f"map_chunk_{number}", container_resources=needs("1", "1Gi"), **lasts(seconds)
        )
        split >> chunk >> merge
    merge >> pileup
