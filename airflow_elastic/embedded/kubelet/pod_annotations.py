"""Annotations by which a pod tells the simulated kubelet how to behave."""

from __future__ import annotations

import math

from airflow_elastic.embedded.types import Object

__all__ = ["EXIT_CODE", "IMAGE_PULL", "RUN_SECONDS", "TERM_SECONDS", "XCOM", "number_of", "text_of"]

RUN_SECONDS = "airflow-elastic.io/run-seconds"
"""The pod's containers last this long, and no process is started."""
EXIT_CODE = "airflow-elastic.io/exit-code"
"""Exit code after run-seconds; 0 where absent."""
TERM_SECONDS = "airflow-elastic.io/term-seconds"
"""How long a pod with run-seconds takes to end after SIGTERM (at most the grace period); 0 where absent."""
IMAGE_PULL = "airflow-elastic.io/image-pull"
"""``fail``: the image cannot be pulled."""
XCOM = "airflow-elastic.io/xcom"
"""JSON that a pod with run-seconds leaves in /airflow/xcom/return.json."""


def text_of(pod: Object, name: str) -> str | None:
    """Return an annotation."""
    value: str | None = (pod["metadata"].get("annotations") or {}).get(name)
    return value


def number_of(pod: Object, name: str, default: float) -> float:
    """Return an annotation as a number that is 0 or more; the default where it is absent or no such number."""
    text = text_of(pod, name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        return default
    return value if math.isfinite(value) and value >= 0 else default
