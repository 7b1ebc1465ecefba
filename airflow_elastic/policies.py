"""Airflow's cluster policy: every pod task gets the pool, slots and placement of its capacity class.

Loaded in every Airflow process, so nothing heavy is imported until a DAG with pod tasks is there.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

from airflow.policies import hookimpl

__all__ = ["pod_mutation_hook", "task_policy"]

log = logging.getLogger(__name__)

_PROVIDER_MODULE = "airflow.providers.cncf.kubernetes.operators.pod"


@hookimpl
def task_policy(task: Any) -> None:
    """Tag a pod task, plain or mapped, ours or the provider's; leave every other task alone.

    Raises:
        AirflowClusterPolicyViolation: the task can never run as it is; the DAG's import error says why.
    """
    provider = sys.modules.get(_PROVIDER_MODULE)
    if provider is None:  # no DAG of this process uses pod tasks
        return
    operator_class = getattr(task, "operator_class", None) or type(task)
    if not (isinstance(operator_class, type) and issubclass(operator_class, provider.KubernetesPodOperator)):
        return
    from airflow_elastic.operators.current import parses_for_one_task, settings_for_tasks

    settings = settings_for_tasks()
    if settings is None:
        return
    from airflow.exceptions import AirflowClusterPolicyViolation

    from airflow_elastic.errors import ElasticError
    from airflow_elastic.operators.policy import apply_policy

    try:
        apply_policy(task, settings)
    except ElasticError as error:
        if parses_for_one_task():
            return  # the other tasks of the file must run; this one is refused when its pod is launched
        raise AirflowClusterPolicyViolation(str(error)) from error
    except Exception:
        # A fault of ours must not take DAGs down: the task runs as it was written.
        log.exception("Task %s could not be given its capacity class and runs as it is written.", task.task_id)


@hookimpl
def pod_mutation_hook(pod: Any) -> None:
    """Place the pod of a plain KubernetesPodOperator task that a rule has tagged; leave every other pod alone.

    Raises:
        TaskTooWide: no node of its class can ever hold it.
    """
    launching = sys.modules.get("airflow_elastic.operators.launching")
    if launching is None or "kubernetes_pod_operator" not in (pod.metadata.labels or {}):
        return  # nothing tagged in this process, or an executor's worker pod
    from airflow_elastic.errors import ElasticError

    try:
        launching.place_tagged_pod(pod)
    except ElasticError:
        raise
    except Exception:
        log.exception("Pod %s could not be placed on its capacity class and runs as written.", pod.metadata.name)
