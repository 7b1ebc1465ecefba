"""``@task.elastic_kubernetes``: a Python function in a pod of a capacity class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from airflow.providers.cncf.kubernetes.decorators.kubernetes import _KubernetesDecoratedOperator
from airflow.sdk.bases.decorator import TaskDecorator, task_decorator_factory

from airflow_elastic.operators.pod import ElasticKubernetesPodOperator

__all__ = ["elastic_kubernetes_task"]


class _ElasticKubernetesDecoratedOperator(_KubernetesDecoratedOperator, ElasticKubernetesPodOperator):
    custom_operator_name = "@task.elastic_kubernetes"


def elastic_kubernetes_task(
    python_callable: Callable[..., Any] | None = None,
    multiple_outputs: bool | None = None,
    **kwargs: Any,
) -> TaskDecorator:
    """Turn a function into a task that runs in a pod, as ``@task.kubernetes`` does, on the nodes of a capacity class.

    :param python_callable: function to decorate
    :param multiple_outputs: push each key of a returned dict as an XCom of its own
    :param kwargs: arguments of ElasticKubernetesPodOperator (``image``, ``capacity_class``, …)
    """
    return task_decorator_factory(
        python_callable=python_callable,
        multiple_outputs=multiple_outputs,
        decorated_operator_class=_ElasticKubernetesDecoratedOperator,
        **kwargs,
    )
