"""Each account does its work with exactly the rights of deploy/rbac: none is missing, none is left over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kubernetes import client, config, watch
from kubernetes.stream import stream

from airflow_elastic.controller.complaints import Complaints
from airflow_elastic.controller.lease import VisibleLease
from airflow_elastic.kubernetes.client import ClusterApi
from airflow_elastic.kubernetes.cluster import ClusterView
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.resources import Resources
from airflow_elastic.model.snapshot import Pod, PodPhase
from airflow_elastic.providers.base import PoolFacts, Target, WarmShare
from airflow_elastic.providers.placeholder import PlaceholderProvider
from airflow_elastic.providers.release_mark import ReleaseMarks
from airflow_elastic.providers.scale import ScaleProvider
from realcluster import roles
from realcluster.cluster import RealCluster
from realcluster.images import BUSYBOX_IMAGE
from realcluster.roles import NAMESPACE

pytestmark = pytest.mark.realcluster

_CONTROLLER, _LAUNCHER, _READER = (f"airflow-elastic-{name}" for name in ("controller", "launcher", "reader"))
_SHAPE = Resources.parse({"cpu": "4", "memory": "8Gi", "pods": 20})
_SELECTOR = (("roles-test", "yes"),)


def until(condition: Callable[[], Any], what: str, seconds: float = 60.0) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.1)
    raise AssertionError(f"not within {seconds} s: {what}")


@pytest.fixture(scope="module")
def admin(real_cluster: RealCluster) -> Iterator[client.ApiClient]:
    api = config.new_client_from_config(str(real_cluster.kubeconfig()))
    roles.made(api)
    core = client.CoreV1Api(api)
    default = [each.metadata.name for each in core.list_namespaced_service_account(NAMESPACE).items]
    until(lambda: "default" in default or _has_account(core), "the namespace's own account")
    yield api
    core.delete_namespace(NAMESPACE)


def _has_account(core: client.CoreV1Api) -> bool:
    return any(each.metadata.name == "default" for each in core.list_namespaced_service_account(NAMESPACE).items)


@pytest.fixture
def fake_node(admin: client.ApiClient) -> Iterator[str]:
    core = client.CoreV1Api(admin)
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "20"}
    core.create_node(
        {
            "metadata": {"name": "roles", "labels": dict(_SELECTOR), "annotations": {"kwok.x-k8s.io/node": "fake"}},
            "spec": {"taints": [{"key": "roles-test", "effect": "NoSchedule"}]},
            "status": {"capacity": capacity, "allocatable": capacity},
        }
    )
    yield "roles"
    core.delete_node("roles")


@pytest.fixture
def static_pool(admin: client.ApiClient) -> Iterator[str]:
    """A static NodePool of Karpenter at zero: it makes no node."""
    custom = client.CustomObjectsApi(admin)
    template = {
        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "roles"},
        "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["c-4x-amd64-linux"]}],
        "taints": [{"key": "roles-test", "effect": "NoSchedule"}],
    }
    body = {
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "roles"},
        "spec": {"replicas": 0, "template": {"spec": template}},
    }  # fmt: skip
    custom.create_cluster_custom_object("karpenter.sh", "v1", "nodepools", body)
    yield "roles"
    custom.delete_cluster_custom_object("karpenter.sh", "v1", "nodepools", "roles")


def placeholders(core: client.CoreV1Api, pool: NodePool) -> tuple[Pod, ...]:
    return tuple(
        Pod(
            each.metadata.name, NAMESPACE, _SHAPE, PodPhase.PENDING,
            placeholder_of=each.metadata.labels["airflow-elastic.io/reservation"], node_pools=(pool.name,),
            created_at=time.time() - 60,
        )
        for each in core.list_namespaced_pod(NAMESPACE, label_selector="airflow-elastic.io/placeholder=true").items
    )  # fmt: skip


def test_the_controller(real_cluster: RealCluster, admin: client.ApiClient, fake_node: str, static_pool: str) -> None:
    core = client.CoreV1Api(admin)
    api = ClusterApi(roles.as_account(admin, _CONTROLLER))

    view = ClusterView()
    view.start(api, watch_seconds=2.0)
    try:
        until(lambda: view.age_seconds() < 60, "the first lists")
        time.sleep(1)
        assert view.problem == ""
    finally:
        view.stop()

    complaints: list[str] = []

    class Heard(Complaints):
        def failed(self, place: str, error: object) -> bool:
            complaints.append(f"{place}: {error}")
            return True

    moment = iter(range(0, 1000, 100))
    lease = VisibleLease(api, "me", Heard(time.monotonic), time.time, lambda: next(moment))
    lease.renew(NAMESPACE, 1)
    lease.renew(NAMESPACE, 2)
    lease.release()
    assert complaints == []

    marks = ReleaseMarks(api)
    assert marks.release(fake_node, time.time()) == ""
    assert core.read_node(fake_node).spec.unschedulable
    assert marks.undo(fake_node)

    # Nothing carries these labels, so the placeholders wait and cost nothing.
    pool = NodePool("roles", (("roles-test", "nowhere"),), _SHAPE, 0, 3)
    provider = PlaceholderProvider(pool, api, NAMESPACE)
    later = time.time() + 600
    provider.apply(PoolFacts(time.time(), pool), Target(1, warm=(WarmShare("first", 1, later),)))
    facts = PoolFacts(time.time(), pool, placeholders=placeholders(core, pool))
    assert [pod.placeholder_of for pod in facts.placeholders] == ["first"]
    provider.apply(facts, Target(1, warm=(WarmShare("second", 1, later),)))
    facts = PoolFacts(time.time(), pool, placeholders=placeholders(core, pool))
    assert [pod.placeholder_of for pod in facts.placeholders] == ["second"]
    assert provider.state(facts).coming_nodes == 1
    provider.apply(facts, Target(0))
    assert placeholders(core, pool) == ()

    options = {"group": "karpenter.sh", "version": "v1", "plural": "nodepools", "name": static_pool}
    scaled = NodePool("roles", _SELECTOR, _SHAPE, 0, 3, provider="scale", provider_options=tuple(options.items()))
    scale = ScaleProvider(scaled, api)
    scale.apply(PoolFacts(time.time(), scaled), Target(1))
    assert scale.state(PoolFacts(time.time(), scaled)).desired_nodes == 1
    scale.apply(PoolFacts(time.time(), scaled), Target(0))

    expect_exactly(real_cluster, _CONTROLLER)
    for verb, path in (("GET", "/api/v1/secrets"), ("DELETE", f"/api/v1/nodes/{fake_node}")):
        assert api.call(verb, path)[0] == 403
    assert api.call("DELETE", "/api/v1/namespaces/default/pods/none")[0] == 403


def test_the_launcher(real_cluster: RealCluster, admin: client.ApiClient) -> None:
    api = roles.as_account(admin, _LAUNCHER)
    core = client.CoreV1Api(api)
    container = {"name": "base", "image": BUSYBOX_IMAGE, "command": ["sh", "-c", "echo hello; sleep 60"]}
    spec = {"restartPolicy": "Never", "containers": [container], "terminationGracePeriodSeconds": 0}
    core.create_namespaced_pod(NAMESPACE, {"metadata": {"name": "task", "labels": {"app": "task"}}, "spec": spec})
    for event in watch.Watch().stream(
        core.list_namespaced_pod, NAMESPACE, field_selector="metadata.name=task", timeout_seconds=30
    ):
        if event["object"].status.phase == "Running":
            break
    running = core.read_namespaced_pod("task", NAMESPACE)
    assert running.status.phase == "Running"
    assert [each.metadata.name for each in core.list_namespaced_pod(NAMESPACE, label_selector="app=task").items]
    core.patch_namespaced_pod("task", NAMESPACE, {"metadata": {"labels": {"already_checked": "True"}}})
    assert core.read_namespaced_pod_log("task", NAMESPACE, _preload_content=False).data == b"hello\n"
    answer = stream(
        core.connect_get_namespaced_pod_exec, "task", NAMESPACE, command=["echo", "result"], stdout=True, stderr=True,
        stdin=False, tty=False,
    )  # fmt: skip
    assert answer == "result\n"
    assert core.list_namespaced_event(NAMESPACE, field_selector="involvedObject.name=task").items
    list(watch.Watch().stream(core.list_namespaced_event, NAMESPACE, timeout_seconds=1))
    assert core.read_node(running.spec.node_name).status.conditions
    core.delete_namespaced_pod("task", NAMESPACE)

    expect_exactly(real_cluster, _LAUNCHER, unseen={(NAMESPACE, "", "pods/exec", "create")})
    for call in (core.list_node, core.list_pod_for_all_namespaces, lambda: core.list_namespaced_secret(NAMESPACE)):
        with pytest.raises(client.ApiException) as refused:
            call()
        assert refused.value.status == 403


def test_the_reader(
    real_cluster: RealCluster, admin: client.ApiClient, fake_node: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow_elastic.cli.commands import init

    api = ClusterApi(roles.as_account(admin, _READER))
    monkeypatch.setattr("airflow_elastic.kubernetes.client.make_cluster_api", lambda conn_id="": api)
    assert fake_node in [node["metadata"]["name"] for node in init.read_nodes()]
    expect_exactly(real_cluster, _READER)
    assert api.call("GET", "/api/v1/pods")[0] == 403


@pytest.mark.parametrize("account", [_CONTROLLER, _LAUNCHER, _READER])
def test_the_server_agrees_with_the_files(admin: client.ApiClient, account: str) -> None:
    review = client.AuthorizationV1Api(roles.as_account(admin, account))
    wanted = roles.granted(account)
    # All that anybody has been given, asked of each: what is not this account's is refused.
    everything = set().union(*(roles.granted(each) for each in (_CONTROLLER, _LAUNCHER, _READER)))
    for namespace, group, resource, verb in everything:
        name, _, sub = resource.partition("/")
        attributes = {
            "namespace": namespace, "group": group, "resource": name, "subresource": sub, "verb": verb,
        }  # fmt: skip
        answer = review.create_self_subject_access_review({"spec": {"resourceAttributes": attributes}})
        mine = {(namespace, group, resource, verb), ("", group, resource, verb)} & wanted
        assert answer.status.allowed is bool(mine), (account, attributes)


def expect_exactly(
    cluster: RealCluster, account: str, unseen: frozenset[roles.Grant] | set[roles.Grant] = frozenset()
) -> None:
    """Every grant was used. ``unseen``: asked for by the server beside another verb, so not in its log by itself."""
    used = roles.used(cluster, account)
    idle = {
        grant
        for grant in roles.granted(account) - set(unseen)
        if not any(each[1:] == grant[1:] and grant[0] in ("", each[0]) for each in used)
    }
    assert idle == set(), f"granted and never used by {account}"
