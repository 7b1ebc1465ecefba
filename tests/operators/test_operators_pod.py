from __future__ import annotations

import inspect
import json
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowException
from airflow.serialization.serialized_objects import DagSerialization
from kubernetes.client import models as k8s

import airflow_elastic
from airflow_elastic.errors import ConfigurationError, Impossible
from airflow_elastic.model.capacity_class import TaskRule
from airflow_elastic.model.carrier import TaskCapacity, read_carrier
from airflow_elastic.model.labels import ANNOTATION_MAP_INDEX, ANNOTATION_RUN_ID, LABEL_CAPACITY_CLASS
from airflow_elastic.model.resources import Resources
from airflow_elastic.model.settings import Mode
from airflow_elastic.operators.errors import MisconfiguredTask, TaskTooWide
from airflow_elastic.operators.pod import ElasticKubernetesPodOperator

CONTEXT: dict[str, Any] = {
    "ti": SimpleNamespace(dag_id="d", task_id="t", run_id="scheduled__2026-01-01T00:00:00+00:00", map_index=-1,
                          try_number=2),
    "run_id": "scheduled__2026-01-01T00:00:00+00:00",
    "dag": SimpleNamespace(),
}  # fmt: skip


def requests(**quantities: str) -> k8s.V1ResourceRequirements:
    return k8s.V1ResourceRequirements(requests=quantities)


def one(dag_id: str = "d", dag_arguments: dict[str, Any] | None = None, **arguments: Any) -> Any:
    with DAG(dag_id, **(dag_arguments or {})):
        return ElasticKubernetesPodOperator(task_id="t", image="busybox", **arguments)


def launched(task: ElasticKubernetesPodOperator) -> k8s.V1Pod:
    # A dry run asks no cluster; the context gives the identity.
    return task.build_pod_request_obj(CONTEXT, dry_run=True)


def test_it_is_exported_lazily() -> None:
    assert airflow_elastic.ElasticKubernetesPodOperator is ElasticKubernetesPodOperator


def test_every_argument_of_kubernetes_pod_operator_is_accepted_and_means_the_same(use_settings) -> None:
    use_settings()
    values: dict[str, Any] = {
        "image": "busybox", "name": "n", "cmds": ["c"], "arguments": ["a"], "labels": {"l": "1"},
        "annotations": {"a": "1"}, "namespace": "ns", "env_vars": {"E": "1"}, "durable": False,
        "deferrable": False, "get_logs": False,
        "startup_timeout_seconds": 7, "schedule_timeout_seconds": 8, "do_xcom_push": True, "poll_interval": 3.0,
        "on_finish_action": "keep_pod", "on_kill_action": "keep_pod", "priority_class_name": "p",
        "node_selector": {"n": "1"}, "termination_grace_period": 5, "trigger_kwargs": {"k": 1}, "skip_on_exit_code": 9,
    }  # fmt: skip
    ignored = {"self", "kwargs", "reattach_on_restart", "is_delete_operator_pod"}
    for name, parameter in inspect.signature(KubernetesPodOperator.__init__).parameters.items():
        if name in ignored:
            continue
        value = values.get(name, parameter.default)
        plain = KubernetesPodOperator(task_id="t", **{name: value})
        ours = ElasticKubernetesPodOperator(task_id="t", **{name: value})
        if name in values and hasattr(plain, name):
            assert getattr(ours, name) == getattr(plain, name), name


def test_without_a_capacity_file_only_deferral_differs() -> None:
    ours = one(capacity_class="whatever")
    assert (ours.deferrable, ours.pool, ours.pool_slots, ours.executor_config) == (True, "default_pool", 1, {})
    assert (ours.startup_timeout_seconds, ours.schedule_timeout_seconds) == (120, 120)
    with DAG("d"):
        plain = KubernetesPodOperator(task_id="t", image="busybox", name="x", random_name_suffix=False)
    ours = one(name="x", random_name_suffix=False)
    assert launched(ours) == plain.build_pod_request_obj(CONTEXT, dry_run=True)


def test_a_broken_capacity_file_warns_once_and_changes_nothing(monkeypatch, caplog) -> None:
    def broken() -> None:
        raise ConfigurationError("capacity.yaml:3: unknown key 'clases'")

    monkeypatch.setattr("airflow_elastic.config.current_settings", broken)
    assert [one(capacity_class="core").pool for _ in range(3)] == ["default_pool"] * 3
    assert len([record for record in caplog.records if "unknown key 'clases'" in record.getMessage()]) == 1


def test_an_explicit_deferrable_false_is_honoured(use_settings) -> None:
    use_settings()
    assert one(deferrable=False).deferrable is False
    assert one(dag_arguments={"default_args": {"deferrable": False}}).deferrable is False


def test_pool_slots_and_carrier_follow_from_class_and_requests(use_settings) -> None:
    use_settings()
    task = one(capacity_class="core", container_resources=requests(cpu="1500m", memory="1Gi"))
    assert (task.pool, task.pool_slots) == ("core_pool", 2)
    assert read_carrier(task.executor_config) == TaskCapacity("core", Resources.parse({"cpu": "1.5", "memory": "1Gi"}))
    assert task.container_resources == requests(cpu="1500m", memory="1Gi")


def test_a_task_without_requests_counts_by_default_and_its_pod_is_left_as_it_is(use_settings) -> None:
    use_settings()
    task = one()
    assert read_carrier(task.executor_config).requests == Resources.parse({"cpu": "1", "memory": "512Mi"})
    assert launched(task).spec.containers[0].resources is None


def test_what_the_author_states_stays(use_settings) -> None:
    use_settings()
    for arguments in (
        {"pool": "mine", "pool_slots": 3},
        {"dag_arguments": {"default_args": {"pool": "mine", "pool_slots": 3}}},
    ):
        task = one(executor_config={"KubernetesExecutor": {"x": 1}}, **arguments)
        assert (task.pool, task.pool_slots) == ("mine", 3)
        assert task.executor_config["KubernetesExecutor"] == {"x": 1}
        assert read_carrier(task.executor_config).capacity_class == "burst"
    assert one(pool="default_pool", container_resources=requests(cpu="2"), pool_slots=1).pool_slots == 1


def test_class_and_node_pools_come_from_default_args_too(use_settings) -> None:
    use_settings()
    task = one(dag_arguments={"default_args": {"capacity_class": "core", "node_pools": ["fixed"]}})
    assert read_carrier(task.executor_config) == TaskCapacity(
        "core", Resources.parse({"cpu": "1", "memory": "512Mi"}), ("fixed",)
    )


def test_a_rule_of_the_file_gives_the_class_where_the_task_names_none(use_settings) -> None:
    use_settings(rules=(TaskRule("core", dag_id="billing_*", tag="money"),))
    assert one("billing_eu", {"tags": ["money"]}).pool == "core_pool"
    assert one("billing_eu", {"tags": ["money"]}, capacity_class="burst").pool == "burst_pool"
    assert one("billing_eu").pool == "burst_pool"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, (480, 480)),
        ({"startup_timeout_seconds": 60}, (60, 480)),
        ({"schedule_timeout_seconds": 60}, (480, 60)),
        ({"startup_timeout_seconds": 900}, (900, 900)),
    ],
)
def test_a_pod_gets_the_time_that_a_new_node_needs_unless_stated(use_settings, arguments, expected) -> None:
    use_settings()
    task = one(**arguments)
    assert (task.startup_timeout_seconds, task.schedule_timeout_seconds) == expected


def test_the_pod_is_placed_when_it_is_launched(use_settings) -> None:
    use_settings()
    affinity = k8s.V1Affinity(
        node_affinity=k8s.V1NodeAffinity(
            required_during_scheduling_ignored_during_execution=k8s.V1NodeSelector(
                node_selector_terms=[
                    k8s.V1NodeSelectorTerm(match_expressions=[k8s.V1NodeSelectorRequirement("zone", "In", ["1"])])
                ]
            )
        )
    )
    template = {
        "metadata": {"labels": {"team": "x"}},
        "spec": {"containers": [{"name": "base"}], "tolerations": [{"key": "own", "operator": "Exists"}]},
    }
    pod = launched(one(affinity=affinity, pod_template_dict=template))
    terms = pod.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution.node_selector_terms
    assert [[each.values[0] for each in term.match_expressions] for term in terms] == [["1", "elastic"], ["1", "fixed"]]
    assert {each.key for each in pod.spec.tolerations} == {"own", "example.org/elastic"}
    assert pod.metadata.labels["team"] == "x"
    assert pod.metadata.labels[LABEL_CAPACITY_CLASS] == "burst"
    assert pod.metadata.annotations[ANNOTATION_RUN_ID] == CONTEXT["run_id"]
    assert pod.metadata.annotations[ANNOTATION_MAP_INDEX] == "-1"
    assert launched(one(capacity_class="core")).spec.priority_class_name == "core-first"


def test_a_task_wider_than_any_node_fails_when_the_dag_is_parsed(use_settings) -> None:
    use_settings()
    with pytest.raises(TaskTooWide, match=r"d\.t asks for cpu 9.*fixed: cpu 4") as caught:
        one(capacity_class="core", container_resources=requests(cpu="9"))
    assert isinstance(caught.value, Impossible)


def test_an_unknown_class_fails_when_the_dag_is_parsed(use_settings) -> None:
    use_settings()
    with pytest.raises(MisconfiguredTask, match=r"'cor'.*core, burst"):
        one(capacity_class="cor")


def test_in_mode_observe_such_a_task_is_shown_and_not_stopped(use_settings) -> None:
    use_settings(mode=Mode.OBSERVE)
    task = one(container_resources=requests(cpu="9"))
    assert (task.pool, task.pool_slots) == ("default_pool", 1)
    assert "cpu 9" in read_carrier(task.executor_config).impossible
    assert launched(task).spec.affinity is None or launched(task).spec.affinity == {}


def test_a_worker_that_parses_the_file_for_another_task_is_not_stopped(use_settings, monkeypatch) -> None:
    use_settings()
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "d")
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_TASK_ID", "other")
    for error, arguments in (
        (TaskTooWide, {"container_resources": requests(cpu="9")}),
        (MisconfiguredTask, {"capacity_class": "cor"}),
    ):
        task = one(**arguments)
        with pytest.raises(error):
            launched(task)


def test_requests_known_only_when_rendered_are_checked_at_launch(use_settings) -> None:
    use_settings()
    task = one(container_resources=requests(cpu="{{ params.cpu }}"))
    assert task.pool_slots == 1
    task.container_resources = requests(cpu="9")
    with pytest.raises(TaskTooWide, match="cpu 9"):
        launched(task)


def test_pool_slots_and_carrier_survive_serialization(use_settings) -> None:
    use_settings()
    task = one(capacity_class="core", container_resources=requests(cpu="2"))
    document = json.loads(json.dumps(DagSerialization.to_dict(task.dag)))
    back = DagSerialization.from_dict(document).get_task("t")
    assert (back.pool, back.pool_slots) == ("core_pool", 2)
    assert read_carrier(back.executor_config) == read_carrier(task.executor_config)


def test_a_pod_that_ended_well_after_it_was_told_to_stop_is_no_success(monkeypatch) -> None:
    def stopped(self: KubernetesPodOperator, _: Any) -> str:
        self.pod = None
        self.on_kill()  # the worker's SIGTERM; the pod traps it and exits with 0, and nothing raises
        return "half a result"

    monkeypatch.setattr(KubernetesPodOperator, "execute_sync", stopped)
    with pytest.raises(AirflowException, match="was stopped while its pod ran"):
        one(deferrable=False).execute_sync(CONTEXT)
