from __future__ import annotations

from typing import Any

import pytest
from embedded_helpers import Api, until
from kubernetes import client


def quota(api: Api, hard: dict[str, str], **spec: Any) -> None:
    body = {"metadata": {"name": "q"}, "spec": {"hard": hard, **spec}}
    api.core.create_namespaced_resource_quota("default", body)


def refusal(api: Api, name: str, **options: Any) -> str:
    with pytest.raises(client.ApiException) as caught:
        api.create(name, run_seconds=60, **options)
    assert caught.value.status == 403
    return str(caught.value.body).replace("\\", "")


def test_a_quota_limits_what_a_namespace_asks_for(api: Api) -> None:
    quota(api, {"pods": "2", "requests.cpu": "1500m"})
    api.create("a", cpu="1", run_seconds=60)
    said = refusal(api, "b", cpu="600m")
    assert "exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=1, limited: requests.cpu=1500m" in said
    assert "failed quota: q: must specify requests.cpu" in refusal(api, "c")
    api.create("d", cpu="100m", run_seconds=60)
    assert "limited: pods=2" in refusal(api, "e", cpu="100m")
    used = until(lambda: (api.core.read_namespaced_resource_quota("q", "default").status.used or {}).get("pods") == "2")
    assert used
    api.core.delete_namespaced_pod("a", "default", grace_period_seconds=0)
    api.create("f", cpu="1", run_seconds=60)


def test_finished_pods_count_no_more(api: Api) -> None:
    quota(api, {"count/pods": "1"})
    api.create("a", run_seconds=0)
    api.until_phase("a", "Succeeded")
    api.create("b", run_seconds=60)


def test_quotas_by_priority_class(api: Api) -> None:
    api.priority_class("core", 100)
    term = {"scopeName": "PriorityClass", "operator": "In", "values": ["core"]}
    quota(api, {"pods": "0"}, scopeSelector={"matchExpressions": [term]})
    api.create("a", run_seconds=60)
    assert "exceeded quota" in refusal(api, "b", priorityClassName="core")


def test_what_has_no_effect_is_said(api: Api) -> None:
    api.create(
        "a",
        run_seconds=60,
        topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
        ],
        volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}],
        container={"livenessProbe": {"exec": {"command": ["true"]}}},
    )
    notes = [message for reason, message in api.events("a") if reason == "NotSimulated"]
    assert len(notes) == 3
    assert any("topologySpreadConstraints has no effect" in note for note in notes)
