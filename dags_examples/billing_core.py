"""Billing: a serial, steady DAG on fixed capacity that nothing may evict."""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.sdk import DAG
from kubernetes.client import models as k8s

from airflow_elastic import ElasticKubernetesPodOperator

DOC = """
### Billing (class *core*)

One task after the other, every two minutes by the clock, on the fixed node pool: periodic work of known length
belongs on fixed capacity.

**Source of the figures**: WfCommons WfInstances (commit f085867), workflow *sarek* (nf-core, Nextflow), instance
`sarek-dirt02-001`: its longest chain, BWAMEM1_MEM (42 s) → GATK4_MARKDUPLICATES (62 s) → GATK4_BASERECALIBRATOR
(63 s) → GATK4_APPLYBQSR (59 s). Durations are the recorded ones divided by 8.
"""

SCALE = 1 / 8
CHAIN = (("import", 42.0, "1Gi"), ("deduplicate", 62.0, "3Gi"), ("rate", 63.0, "1Gi"), ("invoice", 59.0, "1Gi"))


def lasts(recorded_seconds: float) -> dict[str, object]:
    """Sleep that long on a real cluster; the embedded cluster reads the annotation and needs no process."""
    seconds = f"{recorded_seconds * SCALE:.1f}"
    return {"arguments": [seconds], "annotations": {"airflow-elastic.io/run-seconds": seconds}}


with DAG(
    "billing_core",
    doc_md=DOC,
    schedule="*/2 * * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    tags=["example"],
    default_args={
        "image": "busybox:1.37",
        "cmds": ["sleep"],
        "get_logs": False,
        "retries": 1,
        "retry_delay": timedelta(seconds=5),
    },
):
    previous = None
    for name, seconds, memory in CHAIN:
        step = ElasticKubernetesPodOperator(
            task_id=name,
            capacity_class="core",
            container_resources=k8s.V1ResourceRequirements(requests={"cpu": "1", "memory": memory}),
            **lasts(seconds),
        )
        if previous is not None:
            previous >> step
        previous = step
