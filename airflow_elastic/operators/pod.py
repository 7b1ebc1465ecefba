"""The KubernetesPodOperator that knows its capacity class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator
from airflow.providers.cncf.kubernetes.triggers.pod import KubernetesPodTrigger
from airflow.providers.cncf.kubernetes.utils.pod_manager import OnKillAction, PodPhase
from airflow.sdk.exceptions import AirflowException
from kubernetes.client import ApiException
from kubernetes.client import models as k8s

from airflow_elastic.errors import ConfigurationError, ElasticError
from airflow_elastic.model.carrier import read_carrier, write_carrier
from airflow_elastic.model.settings import Settings
from airflow_elastic.operators.current import parses_for_one_task, settings_for_tasks
from airflow_elastic.operators.errors import MisconfiguredTask, TaskTooWide
from airflow_elastic.operators.identity import identity_annotations
from airflow_elastic.operators.placing import place
from airflow_elastic.operators.requests import pod_requests
from airflow_elastic.operators.static_pod import StaticPod
from airflow_elastic.operators.tagging import Tag, class_by_rules, tag_for, why_impossible
from airflow_elastic.triggers.pod import ElasticKubernetesPodTrigger

__all__ = ["ElasticKubernetesPodOperator"]

_TRIGGER_FAILED = "__fail__"  # airflow.sdk: next_method of a task whose trigger crashed or timed out


class ElasticKubernetesPodOperator(KubernetesPodOperator):
    """Runs a pod on the node pools of a capacity class.

    Takes every argument of KubernetesPodOperator. Airflow pool, pool slots, node affinity, tolerations, priority class
    and the time that the pod is given to start follow from the class and the pod's requests, unless stated. Without a
    capacity file it is a KubernetesPodOperator that defers.

    :param capacity_class: class of the capacity file, e.g. ``core`` or ``burst``. None: the file's first rule that
        matches, else its default class.
    :param node_pools: node pools in order of preference, instead of those of the class.
    :param deferrable: wait for the pod in the triggerer (the default) instead of on a worker.
    :param startup_timeout_seconds: as in KubernetesPodOperator. None: its default, or longer where nodes of the class
        take longer to boot.
    :param schedule_timeout_seconds: likewise.
    :raises TaskTooWide: no node of the class can ever hold the pod.
    :raises MisconfiguredTask: the class or a node pool is not in the capacity file.
    """

    # Set by KubernetesPodOperator and BaseOperator.
    executor_config: dict[str, Any]
    startup_timeout_seconds: int
    schedule_timeout_seconds: int

    def __init__(
        self,
        *,
        capacity_class: str | None = None,
        node_pools: Sequence[str] | None = None,
        deferrable: bool = True,
        startup_timeout_seconds: int | None = None,
        schedule_timeout_seconds: int | None = None,
        **kwargs: Any,
    ) -> None:
        stated = {**(kwargs.get("default_args") or {}), **kwargs}
        if startup_timeout_seconds is not None:
            kwargs["startup_timeout_seconds"] = startup_timeout_seconds
        super().__init__(deferrable=deferrable, schedule_timeout_seconds=schedule_timeout_seconds, **kwargs)
        self.capacity_class = capacity_class
        self.node_pools = tuple(node_pools or ())
        self._stated_pool: str | None = stated.get("pool")
        self._stated_pool_slots: int | None = stated.get("pool_slots")
        self._startup_timeout_is_stated = startup_timeout_seconds is not None
        self._schedule_timeout_is_stated = schedule_timeout_seconds is not None
        self._tag: Tag | None = None
        self._refusal: ElasticError | None = None
        if settings := settings_for_tasks():
            self.apply_capacity(settings)

    def apply_capacity(self, settings: Settings) -> None:
        """Set what follows from the task's class; called again by the policy, when the DAG is complete.

        Raises:
            TaskTooWide, MisconfiguredTask: see the class.
        """
        dag = self.dag if self.has_dag() else None
        name = f"{dag.dag_id}.{self.task_id}" if dag else self.task_id
        carried = read_carrier(self.executor_config)
        try:
            tag = tag_for(
                settings,
                task=name,
                capacity_class=self.capacity_class
                or (carried.capacity_class if carried and self._is_mapped_instance else "")
                or class_by_rules(
                    settings,
                    dag_id=dag.dag_id if dag else "",
                    task_id=self.task_id,
                    operators=(self.operator_name, *(each.__name__ for each in type(self).__mro__)),
                    tags=dag.tags if dag else (),
                ),
                node_pools=self.node_pools,
                requests=StaticPod.of(lambda field: getattr(self, field, None)).requests(settings.default_requests),
                pool_slots=None if self._is_mapped_instance else self._stated_pool_slots,
            )
        except ConfigurationError as error:
            self._refuse(MisconfiguredTask(str(error)))
            return
        if tag.acts and tag.capacity.impossible:
            self._refuse(TaskTooWide(tag.capacity.impossible))
            return
        self._tag = tag
        self.executor_config = write_carrier(tag.capacity, self.executor_config)
        if tag.airflow_pool and not self._stated_pool:
            self.pool = tag.airflow_pool
        if tag.pool_slots and not self._stated_pool_slots:
            self.pool_slots = tag.pool_slots
        if not self._startup_timeout_is_stated:
            self.startup_timeout_seconds = max(self.startup_timeout_seconds, tag.start_timeout_seconds)
        if not self._schedule_timeout_is_stated:
            self.schedule_timeout_seconds = max(self.schedule_timeout_seconds, tag.start_timeout_seconds)

    def _refuse(self, error: ElasticError) -> None:
        if not parses_for_one_task():
            raise error
        self._refusal = error

    @property
    def _is_mapped_instance(self) -> bool:
        # Made by unmap() on a worker: pool and slots were settled at parse time and are among its arguments.
        return bool(getattr(self, "_BaseOperator__from_mapped", False))

    def build_pod_request_obj(self, context: Mapping[str, Any] | None = None, *, dry_run: bool = False) -> k8s.V1Pod:
        """Return the pod to launch: KubernetesPodOperator's, placed by the capacity class.

        Raises:
            TaskTooWide: its requests, now that templates are rendered, fit on no node of the class.
            MisconfiguredTask: its class or a node pool is not in the capacity file.
        """
        if self._refusal:
            raise self._refusal
        pod = super().build_pod_request_obj(context, dry_run=dry_run)
        tag = self._tag
        if tag is None:
            return pod
        if tag.acts:
            self._refuse_if_too_wide(pod, tag)
        place(pod, tag.placement, identity_annotations(context) if context else {})
        return pod

    def _refuse_if_too_wide(self, pod: k8s.V1Pod, tag: Tag) -> None:
        from airflow_elastic.kubernetes.placement import admitted_node_pools

        owner = tag.settings.capacity_class(tag.capacity.capacity_class)
        if owner is None:
            return
        spec = pod.spec
        requests = pod_requests(spec.containers, spec.init_containers or (), overhead=spec.overhead)
        pools = admitted_node_pools(tag.settings, owner, tag.capacity.node_pools)
        if why := why_impossible(self.task_id, owner, pools, requests):
            raise TaskTooWide(why)

    def get_or_create_pod(self, pod_request_obj: k8s.V1Pod, context: Mapping[str, Any]) -> k8s.V1Pod:
        """Return the task's pod: the running one of an earlier attempt, or a new one; never one that is going away."""
        if self.reattach_on_restart:
            self._pass_over_terminating_pods(pod_request_obj.metadata.namespace, context)
        return super().get_or_create_pod(pod_request_obj, context)

    def _pass_over_terminating_pods(self, namespace: str, context: Mapping[str, Any]) -> None:
        # The provider looks at the phase only, and a pod that is being deleted still says Running.
        selector = self._build_find_pod_label_selector(context)
        for pod in self.client.list_namespaced_pod(namespace=namespace, label_selector=selector).items:
            if pod.metadata.deletion_timestamp is None:
                continue
            self.log.info("Pod %s is being deleted and is not adopted; a new one is made.", pod.metadata.name)
            try:
                self.patch_already_checked(pod)
            except ApiException as error:
                if error.status != 404:  # gone meanwhile: as good
                    raise

    def execute_sync(self, context: Mapping[str, Any]) -> Any:
        """Run the pod to its end on this worker.

        Raises:
            AirflowException: the worker was told to stop; the pod was deleted, and that is no success.
        """
        result = super().execute_sync(context)
        if self._killed:
            raise AirflowException(
                f"Task {self.task_id} was stopped while its pod ran (its worker got a SIGTERM); the pod was deleted "
                "before it finished. It runs again if it has retries left."
            )
        return result

    def defer(self, *, trigger: Any, **kwargs: Any) -> None:
        """Hand over to the triggerer, with our trigger in place of the provider's."""
        if type(trigger) is KubernetesPodTrigger:
            trigger = ElasticKubernetesPodTrigger(**trigger.serialize()[1])
        super().defer(trigger=trigger, **kwargs)

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Any) -> Any:
        """Continue after the triggerer; when the trigger crashed or timed out, see to the pod before failing."""
        if next_method == _TRIGGER_FAILED:
            self._clean_up_after_trigger(context)
        return super().resume_execution(next_method, next_kwargs, context)

    def _clean_up_after_trigger(self, context: Mapping[str, Any]) -> None:
        # Nobody watches the pod any more: left alone it would run, and be paid for, until its own end.
        try:
            namespace = self.namespace or self.hook.get_namespace() or self._incluster_namespace or "default"
            pod = self._get_pod_from_task_state_store(context) or self.find_pod(namespace, context)
            if pod is None:
                return
            self.pod = pod
            if pod.status.phase in (PodPhase.SUCCEEDED, PodPhase.FAILED):
                self.process_pod_deletion(pod, reraise=False)
            elif self.on_kill_action == OnKillAction.DELETE_POD:
                self.log.info("The trigger of pod %s failed: deleting the pod.", pod.metadata.name)
                self.pod_manager.delete_pod(pod)
        except Exception:
            self.log.exception("The trigger failed and its pod could not be cleaned up; look for pods of this task.")
