"""The operator and its trigger against the embedded cluster: pods really run."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, TaskDeferred
from kubernetes import client as kubernetes_client
from kubernetes import config as kubernetes_config

from airflow_elastic.embedded import ClusterConfig, EmbeddedCluster, NodePoolConfig
from airflow_elastic.model.labels import ANNOTATION_DAG_ID, LABEL_CAPACITY_CLASS
from airflow_elastic.operators.pod import ElasticKubernetesPodOperator
from airflow_elastic.triggers.pod import ElasticKubernetesPodTrigger

ARGUMENTS: dict[str, Any] = {
    "task_id": "t", "image": "busybox", "cmds": ["sh", "-c"], "kubernetes_conn_id": None,
    "deferrable": False, "startup_check_interval_seconds": 0.1, "log_events_on_startup": False,
    "base_container_status_polling_interval": 0.1, "poll_interval": 0.1, "namespace": "default",
    "log_pod_spec_on_failure": False,
}  # fmt: skip
SIZE = {"cpu": "4", "memory": "8Gi", "pods": "20"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    pools = [
        NodePoolConfig(name, {"example.org/pool": name}, allocatable=SIZE, min_nodes=1, max_nodes=1, **more)
        for name, more in (
            ("fixed", {}),
            ("elastic", {"taints": [{"key": "example.org/elastic", "value": "yes", "effect": "NoSchedule"}]}),
            ("foreign", {}),
        )
    ]
    with EmbeddedCluster(ClusterConfig(node_pools=pools)) as running:
        running.write_kubeconfig(tmp_path_factory.mktemp("cluster") / "kubeconfig")
        yield running


@pytest.fixture
def core(cluster: EmbeddedCluster, tmp_path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    kubeconfig = cluster.write_kubeconfig(tmp_path / "kubeconfig")
    # The client reads KUBECONFIG when it is imported, which was long ago.
    monkeypatch.setitem(ARGUMENTS, "config_file", str(kubeconfig))
    monkeypatch.setattr(ElasticKubernetesPodTrigger, "minimum_dwell_seconds", 0.0)
    api = kubernetes_client.CoreV1Api(kubernetes_config.new_client_from_config(str(kubeconfig)))
    api_scheduling = kubernetes_client.SchedulingV1Api(api.api_client)
    names = {each.metadata.name for each in api_scheduling.list_priority_class().items}
    if "core-first" not in names:
        metadata = kubernetes_client.V1ObjectMeta(name="core-first")
        api_scheduling.create_priority_class(kubernetes_client.V1PriorityClass(metadata=metadata, value=1000))
    yield api
    for pod in api.list_namespaced_pod("default").items:
        api.delete_namespaced_pod(pod.metadata.name, "default", grace_period_seconds=0)


def context(try_number: int = 1, task_id: str = "t") -> dict[str, Any]:
    pushed: dict[str, Any] = {}
    ti = SimpleNamespace(
        dag_id="d", task_id=task_id, run_id="r", map_index=-1, try_number=try_number, pushed=pushed, start_date=None,
        xcom_push=lambda key, value: pushed.__setitem__(key, value),
    )  # fmt: skip
    return {"ti": ti, "run_id": "manual__2026-01-01T00:00:00+00:00", "dag": SimpleNamespace()}


def operator(script: str, **arguments: Any) -> ElasticKubernetesPodOperator:
    return ElasticKubernetesPodOperator(**{**ARGUMENTS, "arguments": [script], **arguments})


def pods(core: Any) -> list[Any]:
    return core.list_namespaced_pod("default", label_selector="task_id").items


def until(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 20
    while not (found := condition()):
        assert time.monotonic() < deadline, "the cluster did not get there"
        time.sleep(0.02)
    return found


def event_of(deferred: TaskDeferred) -> dict[str, Any]:
    path, kwargs = deferred.trigger.serialize()
    assert path.endswith("ElasticKubernetesPodTrigger")

    async def first() -> Any:
        async for event in ElasticKubernetesPodTrigger(**kwargs).run():
            return event.payload

    return asyncio.run(first())


def test_a_pod_runs_on_the_nodes_of_its_class(core, use_settings) -> None:
    use_settings()
    task = operator("echo hello", capacity_class="core", on_finish_action="keep_pod")
    assert task.execute(context()) is None
    (pod,) = pods(core)
    node = core.read_node(pod.spec.node_name)
    assert node.metadata.labels["example.org/pool"] == "fixed"
    assert pod.metadata.labels[LABEL_CAPACITY_CLASS] == "core"
    assert pod.metadata.annotations[ANNOTATION_DAG_ID] == "d"
    assert pod.spec.priority_class_name == "core-first"


def test_a_class_prefers_its_first_node_pool_and_tolerates_its_taint(core, use_settings) -> None:
    use_settings()
    operator("true", capacity_class="burst", on_finish_action="keep_pod").execute(context())
    (pod,) = pods(core)
    assert core.read_node(pod.spec.node_name).metadata.labels["example.org/pool"] == "elastic"


def test_the_result_of_a_task_is_pushed(core, use_settings) -> None:
    use_settings()
    script = """mkdir -p /airflow/xcom; echo '{"rows": 3}' > /airflow/xcom/return.json"""
    assert operator(script, do_xcom_push=True).execute(context()) == {"rows": 3}
    until(lambda: not pods(core))


def test_a_failing_pod_fails_the_task(core, use_settings) -> None:
    use_settings()
    with pytest.raises(AirflowException, match="returned a failure"):
        operator("exit 3").execute(context())


def test_a_deferred_task_resumes_with_its_result(core, use_settings) -> None:
    use_settings()
    script = """mkdir -p /airflow/xcom; echo '[1, 2]' > /airflow/xcom/return.json"""
    with pytest.raises(TaskDeferred) as deferred:
        operator(script, deferrable=True, do_xcom_push=True).execute(context())
    assert deferred.value.method_name == "trigger_reentry"
    event = event_of(deferred.value)
    assert event["status"] == "success"
    # A resumed task is a new operator in a new process.
    resumed = operator(script, deferrable=True, do_xcom_push=True)
    assert resumed.resume_execution("trigger_reentry", {"event": event}, context()) == [1, 2]
    until(lambda: not pods(core))


def test_a_deferred_task_whose_pod_fails_fails(core, use_settings) -> None:
    use_settings()
    with pytest.raises(TaskDeferred) as deferred:
        operator("exit 1", deferrable=True).execute(context())
    event = event_of(deferred.value)
    assert event["status"] == "failed"
    with pytest.raises(AirflowException):
        operator("exit 1", deferrable=True).resume_execution("trigger_reentry", {"event": event}, context())


def test_a_trigger_that_crashed_leaves_no_pod_running(core, use_settings) -> None:
    use_settings()
    with pytest.raises(TaskDeferred):
        operator("sleep 60", deferrable=True, termination_grace_period=0).execute(context())
    assert len(pods(core)) == 1
    with pytest.raises(AirflowException):
        operator("sleep 60", deferrable=True).resume_execution("__fail__", {"error": "Trigger failure"}, context())
    until(lambda: not pods(core) or pods(core)[0].metadata.deletion_timestamp)


def test_a_worker_that_is_stopped_never_reports_success(core, use_settings) -> None:
    use_settings()
    # Such a pod exits with 0 when it is told to stop.
    task = operator("trap 'exit 0' TERM; while :; do sleep 0.05; done", get_logs=False, termination_grace_period=5)
    outcome: list[BaseException | str] = []

    def work() -> None:
        try:
            outcome.append(f"success: {task.execute(context())}")
        except BaseException as error:
            outcome.append(error)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    until(lambda: [pod for pod in pods(core) if pod.status.phase == "Running"])
    task.on_kill()
    worker.join(20)
    assert len(outcome) == 1
    assert isinstance(outcome[0], Exception), outcome


def test_a_running_pod_of_an_earlier_attempt_is_adopted(core, use_settings) -> None:
    use_settings()
    with pytest.raises(TaskDeferred) as first:
        operator("sleep 60", deferrable=True).execute(context(1))
    with pytest.raises(TaskDeferred) as second:
        operator("sleep 60", deferrable=True).execute(context(2))
    assert second.value.trigger.pod_name == first.value.trigger.pod_name
    assert len(pods(core)) == 1


def test_a_pod_that_is_going_away_is_not_adopted(core, use_settings) -> None:
    use_settings()
    stubborn = "trap '' TERM; while :; do sleep 0.05; done"
    with pytest.raises(TaskDeferred) as first:
        operator(stubborn, deferrable=True).execute(context(1))
    going = first.value.trigger.pod_name
    until(lambda: [pod for pod in pods(core) if pod.status.phase == "Running"])
    core.delete_namespaced_pod(going, "default", grace_period_seconds=30)
    assert core.read_namespaced_pod(going, "default").status.phase == "Running"
    with pytest.raises(TaskDeferred) as second:
        operator("sleep 60", deferrable=True).execute(context(2))
    assert second.value.trigger.pod_name != going


def test_the_trigger_survives_a_restart_of_the_triggerer(core, use_settings) -> None:
    use_settings()
    with pytest.raises(TaskDeferred) as deferred:
        operator("sleep 0.3", deferrable=True).execute(context())
    _, kwargs = deferred.value.trigger.serialize()
    from airflow.serialization.serialized_objects import BaseSerialization

    stored = json.loads(json.dumps(BaseSerialization.serialize(kwargs)))
    again = ElasticKubernetesPodTrigger(**BaseSerialization.deserialize(stored))

    async def run_twice() -> Any:
        interrupted = asyncio.create_task(anext(again.run()))
        await asyncio.sleep(0.05)
        interrupted.cancel()
        return await anext(ElasticKubernetesPodTrigger(**BaseSerialization.deserialize(stored)).run())

    assert asyncio.run(run_twice()).payload["status"] == "success"
