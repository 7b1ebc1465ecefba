"""Reports: a burst DAG that shares the cluster with the nightly ETL."""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.sdk import DAG
from kubernetes.client import models as k8s

from airflow_elastic import ElasticKubernetesPodOperator

DOC = """
### Reports (class *burst*)

Three regions in parallel, two steps each, then one summary. Shares the elastic node pool with `nightly_etl`.

**Source of the figures**: WfCommons WfInstances (commit f085867), workflow *methylseq* (nf-core, Nextflow), instance
`methylseq-dirt02-001`: TRIMGALORE → BISMARK_ALIGN of its three samples (25 s → 38 s, 26 s → 9 s, 31 s → 68 s), then
MULTIQC (84.2 s). Durations are the recorded ones divided by 5.
"""

SCALE = 1 / 5
REGIONS = {"north": (25.0, 38.0), "south": (26.0, 9.0), "west": (31.0, 68.0)}


def lasts(recorded_seconds: float) -> dict[str, object]:
    """Sleep that long on a real cluster; the embedded cluster reads the annotation and needs no process."""
    seconds = f"{recorded_seconds * SCALE:.1f}"
    return {"arguments": [seconds], "annotations": {"airflow-elastic.io/run-seconds": seconds}}


with DAG(
    "reports_burst",
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
        "container_resources": k8s.V1ResourceRequirements(requests={"cpu": "1", "memory": "512Mi"}),
        "get_logs": False,
        "retries": 1,
        "retry_delay": timedelta(seconds=5),
    },
):
    summary = ElasticKubernetesPodOperator(task_id="summary", **lasts(84.2))
    for region, (extract_seconds, render_seconds) in REGIONS.items():
        extract = ElasticKubernetesPodOperator(task_id=f"extract_{region}", **lasts(extract_seconds))
        render = ElasticKubernetesPodOperator(task_id=f"render_{region}", **lasts(render_seconds))
        extract >> render >> summary
