from __future__ import annotations

import asyncio
import datetime
import inspect
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.cncf.kubernetes.triggers.pod import KubernetesPodTrigger
from airflow.sdk.exceptions import TaskDeferralError, TaskDeferred
from airflow.triggers.base import TriggerEvent

from airflow_elastic.operators.pod import ElasticKubernetesPodOperator
from airflow_elastic.triggers import pod as module
from airflow_elastic.triggers.pod import ElasticKubernetesPodTrigger

PATH = "airflow_elastic.triggers.pod.ElasticKubernetesPodTrigger"
ARGUMENTS: dict[str, Any] = {
    "pod_name": "p",
    "pod_namespace": "ns",
    "trigger_start_time": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
    "base_container_name": "base",
    "log_events_on_startup": False,
    "trigger_kwargs": {"k": 1},
}


class Clock:
    """Time that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(module, "asyncio", SimpleNamespace(sleep=clock.sleep))
    return clock


def events_of(trigger: ElasticKubernetesPodTrigger) -> list[TriggerEvent]:
    async def collect() -> list[TriggerEvent]:
        return [event async for event in trigger.run()]

    return asyncio.run(collect())


def provider_that_takes(monkeypatch: pytest.MonkeyPatch, clock: Clock, seconds: float) -> None:
    async def run(self: KubernetesPodTrigger) -> Any:
        clock.now += seconds
        self._fired_event = True
        yield TriggerEvent({"status": "success"})

    monkeypatch.setattr(KubernetesPodTrigger, "run", run)


def test_it_is_made_again_from_what_it_serializes() -> None:
    path, kwargs = ElasticKubernetesPodTrigger(**ARGUMENTS).serialize()
    assert path == PATH
    assert ElasticKubernetesPodTrigger(**kwargs).serialize() == (path, kwargs)
    assert (kwargs["pod_name"], kwargs["log_events_on_startup"], kwargs["trigger_kwargs"]) == ("p", False, {"k": 1})


def test_it_has_no_constructor_of_its_own() -> None:
    assert "__init__" not in vars(ElasticKubernetesPodTrigger)
    assert inspect.signature(ElasticKubernetesPodTrigger) == inspect.signature(KubernetesPodTrigger)


@pytest.mark.parametrize(("takes", "waits"), [(0.5, [7.5]), (8.0, []), (600.0, [])])
def test_an_event_waits_until_the_deferral_is_booked(monkeypatch, clock: Clock, takes: float, waits) -> None:
    provider_that_takes(monkeypatch, clock, takes)
    assert events_of(ElasticKubernetesPodTrigger(**ARGUMENTS)) == [TriggerEvent({"status": "success"})]
    assert clock.slept == waits


def test_a_kill_while_the_event_waits_still_cleans_up(monkeypatch, clock: Clock) -> None:
    provider_that_takes(monkeypatch, clock, 1.0)
    trigger = ElasticKubernetesPodTrigger(**ARGUMENTS)
    deleted: list[str] = []

    async def delete_pod(name: str, **_: Any) -> None:
        deleted.append(name)

    async def killed_while_sleeping(_: float) -> None:
        await trigger.on_kill()
        raise asyncio.CancelledError

    monkeypatch.setattr(ElasticKubernetesPodTrigger, "hook", SimpleNamespace(delete_pod=delete_pod))
    monkeypatch.setattr(module, "asyncio", SimpleNamespace(sleep=killed_while_sleeping))
    with pytest.raises(asyncio.CancelledError):
        events_of(trigger)
    assert deleted == ["p"]


def test_the_operator_defers_to_it_with_all_arguments_of_the_providers_trigger() -> None:
    task = ElasticKubernetesPodOperator(task_id="t", image="busybox")
    with pytest.raises(TaskDeferred) as deferred:
        task.defer(trigger=KubernetesPodTrigger(**ARGUMENTS), method_name="trigger_reentry")
    assert deferred.value.trigger.serialize() == ElasticKubernetesPodTrigger(**ARGUMENTS).serialize()


class FakeCluster:
    """What the operator's clean-up asks of a cluster."""

    def __init__(self, phase: str) -> None:
        metadata = SimpleNamespace(name="p", namespace="ns", labels={"try_number": "1"}, deletion_timestamp=None)
        self.pod = SimpleNamespace(metadata=metadata, status=SimpleNamespace(phase=phase, container_statuses=None))
        self.deleted: list[str] = []

    def list_namespaced_pod(self, namespace: str, label_selector: str) -> Any:
        assert "task_id=t" in label_selector
        return SimpleNamespace(items=[self.pod])

    def delete_pod(self, pod: Any) -> None:
        self.deleted.append(pod.metadata.name)


@pytest.mark.parametrize(
    ("phase", "arguments", "deleted"),
    [
        ("Running", {}, ["p"]),
        ("Running", {"on_finish_action": "keep_pod"}, ["p"]),
        ("Running", {"on_kill_action": "keep_pod"}, []),
        ("Succeeded", {}, ["p"]),
        ("Failed", {"on_finish_action": "keep_pod"}, []),
    ],
)
def test_a_trigger_that_crashed_leaves_no_pod_behind(phase: str, arguments: dict[str, Any], deleted) -> None:
    cluster = FakeCluster(phase)
    task = ElasticKubernetesPodOperator(task_id="t", image="busybox", namespace="ns", **arguments)
    task.client = cluster
    task.pod_manager = cluster
    ti = SimpleNamespace(dag_id="d", task_id="t", map_index=-1, try_number=1)
    context = {"ti": ti, "run_id": "r", "dag": SimpleNamespace()}
    with pytest.raises(TaskDeferralError):
        task.resume_execution("__fail__", {"error": "Trigger failure"}, context)
    assert cluster.deleted == deleted
