"""airflow-elastic: makes Airflow aware of the machines below it.

Importing this package imports neither Airflow nor Kubernetes: names are resolved when they are first used, since every
task process imports it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_elastic.operators.pod import ElasticKubernetesPodOperator as ElasticKubernetesPodOperator

__version__ = "0.1.0"

_LAZY_EXPORTS = {
    "ElasticKubernetesPodOperator": "airflow_elastic.operators.pod",
}

__all__ = ["ElasticKubernetesPodOperator", "__version__"]


def __getattr__(name: str) -> Any:
    module_name = _LAZY_EXPORTS.get(name)
    if module_name is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module_name), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY_EXPORTS])
