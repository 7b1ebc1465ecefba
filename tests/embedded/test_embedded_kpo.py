"""Airflow's own KubernetesPodOperator and pod manager, unmodified."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from embedded_helpers import Api, until

pod_manager = pytest.importorskip("airflow.providers.cncf.kubernetes.utils.pod_manager")


def operator(api: Api, folder: Path, script: str, **options: Any) -> Any:
    from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator

    settings: dict[str, Any] = {
        "task_id": "t",
        "name": "t",
        "namespace": "default",
        "image": "python:3",
        "cmds": ["bash", "-c"],
        "arguments": [script],
        "config_file": str(api.cluster.write_kubeconfig(folder / "kubeconfig")),
        "kubernetes_conn_id": None,
        "in_cluster": False,
        "startup_check_interval_seconds": 1,
        **options,
    }
    return KubernetesPodOperator(**settings)


def context() -> Any:
    ti = mock.MagicMock(task_id="t", dag_id="d", run_id="r", map_index=-1, try_number=1)
    dag = mock.MagicMock(dag_id="d", parent_dag=None, is_subdag=False)
    return {"ti": ti, "task_instance": ti, "run_id": "r", "dag": dag, "dag_run": mock.MagicMock(), "ts": "2030"}


def test_execute_with_xcom_and_logs(api: Api, tmp_path: Path) -> None:
    script = "mkdir -p /airflow/xcom; echo hello; echo '{\"x\": 5}' > /airflow/xcom/return.json"
    task = operator(api, tmp_path, script, do_xcom_push=True)
    assert task.execute(context()) == {"x": 5}
    assert api.core.list_namespaced_pod("default").items == []


def test_a_failure_is_a_failure(api: Api, tmp_path: Path) -> None:
    from airflow.providers.common.compat.sdk import AirflowException

    task = operator(api, tmp_path, "echo broken; exit 3", on_finish_action="keep_pod")
    with pytest.raises(AirflowException, match="returned a failure"):
        task.execute(context())
    (pod,) = api.core.list_namespaced_pod("default").items
    assert pod.status.container_statuses[0].state.terminated.exit_code == 3


def test_simulated_pods_return_xcom_too(api: Api, tmp_path: Path) -> None:
    notes = {"airflow-elastic.io/run-seconds": "0.1", "airflow-elastic.io/xcom": '["made", "up"]'}
    task = operator(api, tmp_path, "exit 9", annotations=notes, do_xcom_push=True)
    assert task.execute(context()) == ["made", "up"]


def test_killing_a_task_ends_its_pod(api: Api, tmp_path: Path) -> None:
    task = operator(api, tmp_path, "sleep 600")
    task.pod = task.get_or_create_pod(task.build_pod_request_obj(context()), context())
    name = task.pod.metadata.name
    api.until_phase(name, "Running")
    task.on_kill()
    api.until_phase(name, None)


def test_pod_manager_follows_logs_and_reads_events(api: Api) -> None:
    manager = pod_manager.PodManager(api.core)
    script = "echo one; sleep 0.1; echo two"
    pod = api.create("a", command=["sh", "-c", script])
    asyncio.run(manager.await_pod_start(pod, check_interval=1))
    until(lambda: api.phase("a") != "Pending")
    status = manager.fetch_container_logs(pod, "base", follow=True)
    assert status.running is False
    assert status.last_log_time is not None
    assert manager.await_pod_completion(pod).status.phase == "Succeeded"
    assert {"Scheduled", "Started"} <= {event.reason for event in manager.read_pod_events(pod).items}


def test_the_asynchronous_hook(api: Api) -> None:
    from airflow.providers.cncf.kubernetes.hooks.kubernetes import AsyncKubernetesHook

    hook = AsyncKubernetesHook(conn_id=None, in_cluster=False, config_dict=api.cluster.kubeconfig())

    async def run() -> None:
        api.create("a", command=["sh", "-c", "echo hi; sleep 0.3"])
        pod = await hook.get_pod("a", "default")
        assert pod.metadata.name == "a"
        first = await anext(hook.watch_pod_events("a", "default", timeout_seconds=1))
        assert first.involved_object.name == "a"
        while (await hook.get_pod("a", "default")).status.phase != "Succeeded":
            await asyncio.sleep(0.02)
        lines = await hook.read_logs("a", "default", "base")
        assert [line.split(" ", 1)[1] for line in lines if line] == ["hi"]
        events = await hook.get_pod_events("a", "default")
        assert events.items
        await hook.delete_pod("a", "default")

    asyncio.run(run())
    assert api.pod("a") is None
