"""Names of the labels, annotations and keys that we put on Kubernetes and Airflow objects."""

from __future__ import annotations

__all__ = [
    "ANNOTATION_DAG_ID",
    "ANNOTATION_EXPIRES_AT",
    "ANNOTATION_MAP_INDEX",
    "ANNOTATION_RELEASE",
    "ANNOTATION_RUN_ID",
    "ANNOTATION_TASK_ID",
    "ANNOTATION_TRY_NUMBER",
    "GROUP",
    "LABEL_CAPACITY_CLASS",
    "LABEL_MANAGED_BY",
    "LABEL_PLACEHOLDER",
    "LABEL_RESERVATION",
    "MANAGED_BY",
    "PLACEHOLDER_PRIORITY_CLASS",
]

GROUP = "airflow-elastic.io"

LABEL_MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGED_BY = "airflow-elastic"

LABEL_CAPACITY_CLASS = f"{GROUP}/capacity-class"
"""On a task's pod: its class."""
LABEL_PLACEHOLDER = f"{GROUP}/placeholder"
"""On a placeholder pod, value ``true``."""
LABEL_RESERVATION = f"{GROUP}/reservation"
"""On a placeholder pod: the reservation's id."""

# Exact identities: label values cannot hold run ids such as scheduled__2026-01-01T00:00:00+00:00.
ANNOTATION_DAG_ID = f"{GROUP}/dag-id"
ANNOTATION_RUN_ID = f"{GROUP}/run-id"
ANNOTATION_TASK_ID = f"{GROUP}/task-id"
ANNOTATION_MAP_INDEX = f"{GROUP}/map-index"
ANNOTATION_TRY_NUMBER = f"{GROUP}/try-number"
ANNOTATION_EXPIRES_AT = f"{GROUP}/expires-at"
"""On everything that we create: Unix seconds after which anybody may delete it."""
ANNOTATION_RELEASE = f"{GROUP}/release"
"""On a node that is to go first when its pool shrinks: Unix seconds of the decision."""

PLACEHOLDER_PRIORITY_CLASS = "airflow-elastic-placeholder"
"""Value −10: the lowest for which cluster-autoscaler still brings a node."""
