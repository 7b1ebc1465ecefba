from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.exceptions import AirflowClusterPolicyViolation
from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, task
from airflow.serialization.serialized_objects import DagSerialization, LazyDeserializedDAG
from kubernetes.client import models as k8s

from airflow_elastic import policies
from airflow_elastic.model.capacity_class import TaskRule
from airflow_elastic.model.carrier import read_carrier
from airflow_elastic.model.labels import LABEL_CAPACITY_CLASS
from airflow_elastic.model.settings import Mode
from airflow_elastic.operators.errors import TaskTooWide
from airflow_elastic.operators.pod import ElasticKubernetesPodOperator

RULES = (TaskRule("core", dag_id="billing_*", operator="KubernetesPodOperator"),)


def requests(**quantities: str) -> k8s.V1ResourceRequirements:
    return k8s.V1ResourceRequirements(requests=quantities)


def serialized(dag: DAG) -> Any:
    for each in dag.tasks:
        policies.task_policy(each)
    return DagSerialization.from_dict(json.loads(json.dumps(DagSerialization.to_dict(dag))))


def mapped(dag_id: str = "d", expand: dict[str, Any] | None = None, dag_arguments: Any = None, **partial: Any) -> Any:
    with DAG(dag_id, **(dag_arguments or {})) as dag:
        ElasticKubernetesPodOperator.partial(task_id="t", image="busybox", **partial).expand(
            **(expand or {"arguments": [["1"], ["2"]]})
        )
    return serialized(dag).get_task("t")


def test_a_mapped_task_gets_pool_slots_and_carrier(use_settings) -> None:
    use_settings()
    got = mapped(capacity_class="core", container_resources=requests(cpu="2"))
    assert (got.pool, got.pool_slots) == ("core_pool", 2)
    assert read_carrier(got.executor_config).capacity_class == "core"


def test_a_mapped_tasks_class_may_come_from_default_args(use_settings) -> None:
    use_settings()
    defaults = {"default_args": {"capacity_class": "core", "container_resources": requests(cpu="2")}}
    got = mapped(dag_arguments=defaults)
    assert (got.pool, got.pool_slots) == ("core_pool", 2)


def test_a_mapped_task_counts_as_wide_as_its_widest_instance(use_settings) -> None:
    use_settings()
    assert mapped(expand={"container_resources": [requests(cpu="2"), requests(cpu="3")]}).pool_slots == 3


def test_what_the_author_of_a_mapped_task_states_stays(use_settings) -> None:
    use_settings()
    got = mapped(pool="mine", pool_slots=4, executor_config={"x": 1})
    assert (got.pool, got.pool_slots, got.executor_config["x"]) == ("mine", 4, 1)


def test_an_instance_of_a_mapped_task_is_placed_as_its_class_says(use_settings) -> None:
    use_settings()
    with DAG("d") as dag:
        ElasticKubernetesPodOperator.partial(task_id="t", image="busybox", capacity_class="core").expand(
            arguments=[["1"], ["2"]]
        )
    task_ = dag.get_task("t")
    policies.task_policy(task_)
    instance = task_.unmap({"arguments": ["2"]})
    assert (instance.arguments, instance.pool, instance.deferrable) == (["2"], "core_pool", True)
    assert instance.build_pod_request_obj(dry_run=True).spec.priority_class_name == "core-first"


def test_a_mapped_task_that_can_never_run_is_a_policy_violation(use_settings) -> None:
    use_settings()
    with pytest.raises(AirflowClusterPolicyViolation, match=r"d\.t asks for cpu 9"):
        mapped(container_resources=requests(cpu="9"))
    with pytest.raises(AirflowClusterPolicyViolation, match="cannot be mapped over"):
        mapped(expand={"capacity_class": ["core", "burst"]})
    with pytest.raises(AirflowClusterPolicyViolation, match="'cor'"):
        mapped(capacity_class="cor")


def test_decorated_tasks_plain_and_mapped(use_settings) -> None:
    use_settings()
    with DAG("d") as dag:

        @task.elastic_kubernetes(image="python", capacity_class="core", container_resources=requests(cpu="2"))
        def work(value: int) -> int:
            return value

        work(1)
        work.override(task_id="many").expand(value=[1, 2])
    back = serialized(dag)
    assert {each.task_id: (each.pool, each.pool_slots) for each in back.tasks} == {
        "work": ("core_pool", 2),
        "many": ("core_pool", 2),
    }
    assert dag.get_task("work").operator_name == "@task.elastic_kubernetes"
    assert dag.get_task("work").deferrable is True


def test_plain_pod_tasks_are_tagged_by_rules_and_others_left_alone(use_settings) -> None:
    use_settings(rules=RULES)
    with DAG("billing_eu") as dag:
        KubernetesPodOperator(task_id="plain", image="busybox", container_resources=requests(cpu="2"))
        KubernetesPodOperator.partial(task_id="mapped", image="busybox").expand(arguments=[["1"]])
        KubernetesPodOperator(task_id="own_pool", image="busybox", pool="mine")
        EmptyOperator(task_id="empty")
    with DAG("other") as other:
        KubernetesPodOperator(task_id="plain", image="busybox")
    back = serialized(dag)
    assert {each.task_id: (each.pool, each.pool_slots) for each in back.tasks} == {
        "plain": ("core_pool", 2),
        "mapped": ("core_pool", 1),
        "own_pool": ("mine", 1),
        "empty": ("default_pool", 1),
    }
    assert read_carrier(back.get_task("mapped").executor_config).capacity_class == "core"
    assert read_carrier(back.get_task("empty").executor_config) is None
    assert serialized(other).get_task("plain").pool == "default_pool"
    assert dag.get_task("plain").schedule_timeout_seconds == 240


def test_the_pod_of_a_plain_task_is_placed_at_launch(use_settings, monkeypatch) -> None:
    use_settings(rules=RULES)
    monkeypatch.setattr("airflow.providers.cncf.kubernetes.operators.pod.pod_mutation_hook", policies.pod_mutation_hook)
    template = {"spec": {"containers": [{"name": "base"}], "tolerations": [{"key": "own"}]}}
    with DAG("billing_eu") as dag:
        KubernetesPodOperator(task_id="plain", image="busybox", pod_template_dict=template)
    with DAG("other") as other:
        KubernetesPodOperator(task_id="plain", image="busybox")
    for each in (*dag.tasks, *other.tasks):
        policies.task_policy(each)

    def launched(dag: DAG) -> k8s.V1Pod:
        ti = SimpleNamespace(dag_id=dag.dag_id, task_id="plain", run_id="r", map_index=-1, try_number=1)
        context = {"ti": ti, "run_id": "r", "dag": SimpleNamespace()}
        return dag.get_task("plain").build_pod_request_obj(context, dry_run=True)

    pod = launched(dag)
    assert pod.metadata.labels[LABEL_CAPACITY_CLASS] == "core"
    assert pod.spec.priority_class_name == "core-first"
    assert [each.key for each in pod.spec.tolerations] == ["own"]
    assert pod.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution is not None
    assert LABEL_CAPACITY_CLASS not in launched(other).metadata.labels


def test_a_plain_task_that_can_never_run_is_a_violation_and_never_launched(use_settings, monkeypatch) -> None:
    use_settings(rules=RULES)
    with DAG("billing_eu") as dag:
        KubernetesPodOperator(task_id="plain", image="busybox", container_resources=requests(cpu="9"))
    with pytest.raises(AirflowClusterPolicyViolation, match=r"billing_eu\.plain asks for cpu 9"):
        policies.task_policy(dag.get_task("plain"))
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_TASK_ID", "other")
    policies.task_policy(dag.get_task("plain"))
    labels = {"dag_id": "billing_eu", "task_id": "plain", "kubernetes_pod_operator": "True"}
    with pytest.raises(TaskTooWide):
        policies.pod_mutation_hook(k8s.V1Pod(metadata=k8s.V1ObjectMeta(labels=labels), spec=None))


def test_mapped_plain_tasks_are_not_given_what_their_instances_bring(use_settings) -> None:
    use_settings(rules=RULES)
    with DAG("billing_eu") as dag:
        KubernetesPodOperator.partial(task_id="t", image="busybox").expand_kwargs(
            [{"startup_timeout_seconds": 60}, {"startup_timeout_seconds": 90}]
        )
    policies.task_policy(dag.get_task("t"))
    arguments = dag.get_task("t").partial_kwargs
    assert "startup_timeout_seconds" not in arguments
    assert arguments["schedule_timeout_seconds"] == 240


def test_without_settings_or_in_observe_mode_pools_stay(use_settings) -> None:
    use_settings(None)
    assert mapped(capacity_class="core").pool == "default_pool"
    use_settings(mode=Mode.OBSERVE)
    got = mapped(capacity_class="core")
    assert (got.pool, read_carrier(got.executor_config).capacity_class) == ("default_pool", "core")


def test_a_fault_of_ours_does_not_take_dags_down(use_settings, monkeypatch, caplog) -> None:
    use_settings()

    def fault(*_: object) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr("airflow_elastic.operators.policy.apply_policy", fault)
    assert mapped().pool == "default_pool"
    assert "a fault" in caplog.text


def test_airflow_finds_the_policy_by_its_entry_point() -> None:
    from airflow.settings import get_policy_plugin_manager

    hook = get_policy_plugin_manager().hook
    for implementations in (hook.task_policy.get_hookimpls(), hook.pod_mutation_hook.get_hookimpls()):
        assert policies in [each.plugin for each in implementations]


def test_a_dag_is_stored_without_being_deserialized(use_settings) -> None:
    use_settings()
    with DAG("d") as dag:
        ElasticKubernetesPodOperator(task_id="t", image="busybox", capacity_class="core")
    for each in dag.tasks:
        policies.task_policy(each)
    assert LazyDeserializedDAG.from_dag(dag).dag_id == "d"
