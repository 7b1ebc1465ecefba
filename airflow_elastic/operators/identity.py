"""Whose pod it is: annotations with the task instance's exact identity (label values cannot hold run ids)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_elastic.model.labels import (
    ANNOTATION_DAG_ID,
    ANNOTATION_MAP_INDEX,
    ANNOTATION_RUN_ID,
    ANNOTATION_TASK_ID,
    ANNOTATION_TRY_NUMBER,
)

__all__ = ["identity_annotations"]


def identity_annotations(context: Mapping[str, Any]) -> dict[str, str]:
    """Return the annotations for the task instance of an execution context."""
    ti = context["ti"]
    map_index = -1 if ti.map_index is None else ti.map_index
    return {
        ANNOTATION_DAG_ID: ti.dag_id,
        ANNOTATION_RUN_ID: context["run_id"],
        ANNOTATION_TASK_ID: ti.task_id,
        ANNOTATION_MAP_INDEX: str(map_index),
        ANNOTATION_TRY_NUMBER: str(ti.try_number),
    }
