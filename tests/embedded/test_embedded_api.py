"""The API server through the real client."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest
from embedded_helpers import Api, pod_body, until
from kubernetes import client


def raw(api: Api, path: str, method: str = "GET", body: bytes | None = None, **headers: str) -> tuple[int, Any]:
    request = urllib.request.Request(
        api.cluster.url + path, method=method, data=body, headers={k.replace("_", "-"): v for k, v in headers.items()}
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def status_of(error: pytest.ExceptionInfo[client.ApiException]) -> dict[str, Any]:
    status: dict[str, Any] = json.loads(error.value.body)
    return status


def test_create_read_update_delete(api: Api) -> None:
    made = api.core.create_namespaced_config_map("default", {"metadata": {"name": "c"}, "data": {"a": "1"}})
    assert made.metadata.uid
    assert made.metadata.creation_timestamp
    made.data["a"] = "2"
    changed = api.core.replace_namespaced_config_map("c", "default", made)
    assert int(changed.metadata.resource_version) > int(made.metadata.resource_version)
    assert api.core.read_namespaced_config_map("c", "default").data == {"a": "2"}
    removed = api.core.delete_namespaced_config_map("c", "default")
    assert removed.status == "Success"
    with pytest.raises(client.ApiException) as caught:
        api.core.read_namespaced_config_map("c", "default")
    assert status_of(caught)["message"] == 'configmaps "c" not found'
    assert status_of(caught)["reason"] == "NotFound"


def test_conflicts(api: Api) -> None:
    body = {"metadata": {"name": "c"}, "data": {"a": "1"}}
    old = api.core.create_namespaced_config_map("default", body)
    with pytest.raises(client.ApiException) as caught:
        api.core.create_namespaced_config_map("default", body)
    assert (caught.value.status, status_of(caught)["reason"]) == (409, "AlreadyExists")
    api.core.patch_namespaced_config_map("c", "default", {"data": {"a": "2"}})
    old.data["a"] = "3"
    with pytest.raises(client.ApiException) as caught:
        api.core.replace_namespaced_config_map("c", "default", old)
    assert (caught.value.status, status_of(caught)["reason"]) == (409, "Conflict")
    with pytest.raises(client.ApiException) as caught:
        api.core.patch_namespaced_config_map(
            "c", "default", {"metadata": {"resourceVersion": old.metadata.resource_version}, "data": {"a": "4"}}
        )
    assert caught.value.status == 409
    with pytest.raises(client.ApiException) as caught:
        api.core.delete_namespaced_config_map("c", "default", body={"preconditions": {"uid": "another"}})
    assert caught.value.status == 409


def test_a_write_that_changes_nothing_makes_no_version(api: Api) -> None:
    made = api.core.create_namespaced_config_map("default", {"metadata": {"name": "c"}, "data": {"a": "1"}})
    same = api.core.patch_namespaced_config_map("c", "default", {"data": {"a": "1"}})
    assert same.metadata.resource_version == made.metadata.resource_version


def test_generate_name_and_dry_run(api: Api) -> None:
    body = {"metadata": {"generateName": "run-"}}
    names = {api.core.create_namespaced_config_map("default", body).metadata.name for _ in range(5)}
    assert len(names) == 5
    assert all(name.startswith("run-") and len(name) == 9 for name in names)
    api.core.create_namespaced_config_map("default", {"metadata": {"name": "tried"}}, dry_run="All")
    with pytest.raises(client.ApiException):
        api.core.read_namespaced_config_map("tried", "default")
    api.core.delete_namespaced_config_map(sorted(names)[0], "default", dry_run="All")
    assert len(api.core.list_namespaced_config_map("default").items) == 5


def test_the_server_owns_uid_and_timestamps(api: Api) -> None:
    made = api.core.create_namespaced_config_map("default", {"metadata": {"name": "c", "uid": "mine"}})
    assert made.metadata.uid != "mine"
    patched = api.core.patch_namespaced_config_map(
        "c", "default", {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z", "labels": {"a": "b"}}}
    )
    assert patched.metadata.creation_timestamp == made.metadata.creation_timestamp
    assert patched.metadata.labels == {"a": "b"}


@pytest.mark.parametrize(
    ("pod", "code", "said"),
    [
        (pod_body("UPPER"), 422, "RFC 1123 subdomain"),
        (pod_body("a", labels={"x": "not valid!"}), 422, "metadata.labels"),
        ({"metadata": {"name": "a"}, "spec": {"containers": []}}, 422, "spec.containers: Required value"),
        ({"metadata": {"name": "a"}}, 422, "spec"),
        (pod_body("a", container={"image": ""}), 422, "spec.containers[0].image: Required value"),
        (pod_body("a", cpu="lots"), 422, "is not a Kubernetes quantity"),
        (pod_body("a", restartPolicy="Sometimes"), 422, 'Unsupported value: "Sometimes"'),
        (pod_body("a", container={"volumeMounts": [{"name": "v", "mountPath": "/v"}]}), 422, 'Not found: "v"'),
        (
            pod_body("a", container={"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}),
            422,
            "must be less than or equal to cpu limit",
        ),
        (pod_body("a", priorityClassName="none"), 403, "no PriorityClass with name none was found"),
        ({**pod_body("a"), "kind": "Node"}, 400, "the object is a Node"),
        ({**pod_body("a"), "apiVersion": "v9"}, 400, "does not match the expected API version"),
    ],
)
def test_pods_that_are_refused(api: Api, pod: dict[str, Any], code: int, said: str) -> None:
    with pytest.raises(client.ApiException) as caught:
        api.core.create_namespaced_pod("default", pod)
    assert caught.value.status == code
    assert said in status_of(caught)["message"]


def test_pods_in_a_namespace_that_does_not_exist(api: Api) -> None:
    with pytest.raises(client.ApiException) as caught:
        api.create("a", namespace="nowhere")
    assert (caught.value.status, status_of(caught)["message"]) == (404, 'namespaces "nowhere" not found')


def test_pods_get_defaults(api: Api) -> None:
    pod = api.create("a", run_seconds=60, cpu="500m")
    assert pod.spec.termination_grace_period_seconds == 30
    assert pod.spec.priority == 0
    assert pod.spec.service_account_name == "default"
    assert {t.key for t in pod.spec.tolerations} == {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    }
    assert pod.status.phase == "Pending"
    assert pod.status.qos_class == "Burstable"
    limited = api.create("b", container={"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}, run_seconds=60)
    assert limited.spec.containers[0].resources.requests == {"cpu": "1", "memory": "1Gi"}
    assert limited.status.qos_class == "Guaranteed"


def test_a_pods_spec_cannot_change_but_for_a_few_fields(api: Api) -> None:
    api.create("a", run_seconds=60)
    with pytest.raises(client.ApiException) as caught:
        api.core.patch_namespaced_pod("a", "default", {"spec": {"nodeSelector": {"x": "y"}}})
    assert caught.value.status == 422
    assert "pod updates may not change fields other than" in status_of(caught)["message"]
    patched = api.core.patch_namespaced_pod(
        "a",
        "default",
        {"metadata": {"labels": {"n": "1"}}, "spec": {"containers": [{"name": "base", "image": "other"}]}},
    )
    assert patched.spec.containers[0].image == "other"
    assert patched.metadata.labels == {"n": "1"}


def test_status_is_written_by_its_subresource_only(api: Api) -> None:
    api.create("a", run_seconds=60)
    api.until_phase("a", "Running")
    api.core.patch_namespaced_pod("a", "default", {"status": {"phase": "Failed"}})
    assert api.phase("a") == "Running"
    condition = {"type": "example.com/Ready", "status": "True"}
    api.core.patch_namespaced_pod_status("a", "default", {"status": {"conditions": [condition]}})
    types = {c.type for c in api.pod("a").status.conditions}
    assert {"example.com/Ready", "PodScheduled", "Ready"} <= types


def test_lists_by_selectors(api: Api) -> None:
    for name, labels in (("a", {"run": "1"}), ("b", {"run": "2"}), ("c", {})):
        api.create(name, labels=labels, run_seconds=0 if name == "b" else 60)
    api.until_phase("b", "Succeeded")

    def names(**selectors: str) -> list[str]:
        return [pod.metadata.name for pod in api.core.list_namespaced_pod("default", **selectors).items]

    assert names() == ["a", "b", "c"]
    assert names(label_selector="run") == ["a", "b"]
    assert names(label_selector="run in (2,3)") == ["b"]
    assert names(label_selector="!run") == ["c"]
    assert names(field_selector="status.phase!=Succeeded") == ["a", "c"]
    assert names(field_selector=f"spec.nodeName={api.node_names()[0]}", label_selector="run!=1") == ["b", "c"]
    for wrong in ({"label_selector": "a b"}, {"field_selector": "spec.nonsense=1"}):
        with pytest.raises(client.ApiException) as caught:
            names(**wrong)
        assert caught.value.status == 400


def test_pages_are_a_consistent_snapshot(api: Api) -> None:
    for number in range(5):
        api.core.create_namespaced_config_map("default", {"metadata": {"name": f"c{number}"}})
    first = api.core.list_namespaced_config_map("default", limit=2)
    assert [c.metadata.name for c in first.items] == ["c0", "c1"]
    assert first.metadata.remaining_item_count == 3
    api.core.delete_namespaced_config_map("c3", "default")
    api.core.create_namespaced_config_map("default", {"metadata": {"name": "c9"}})
    rest = api.core.list_namespaced_config_map("default", limit=9, _continue=first.metadata._continue)
    assert [c.metadata.name for c in rest.items] == ["c2", "c3", "c4"]
    assert rest.metadata.resource_version == first.metadata.resource_version
    with pytest.raises(client.ApiException) as caught:
        api.core.list_namespaced_config_map("default", limit=9, _continue="unknown")
    assert (caught.value.status, status_of(caught)["reason"]) == (410, "Expired")


def test_delete_collection(api: Api) -> None:
    for name, labels in (("a", {"run": "1"}), ("b", {"run": "1"}), ("c", {})):
        api.core.create_namespaced_config_map("default", {"metadata": {"name": name, "labels": labels}})
    api.core.delete_collection_namespaced_config_map("default", label_selector="run=1")
    assert [c.metadata.name for c in api.core.list_namespaced_config_map("default").items] == ["c"]


def test_finalizers_hold_an_object(api: Api) -> None:
    api.core.create_namespaced_config_map("default", {"metadata": {"name": "c", "finalizers": ["example.com/hold"]}})
    api.core.delete_namespaced_config_map("c", "default")
    held = api.core.read_namespaced_config_map("c", "default")
    assert held.metadata.deletion_timestamp is not None
    operations = [{"op": "remove", "path": "/metadata/finalizers"}]
    api.core.patch_namespaced_config_map("c", "default", operations)
    assert api.core.list_namespaced_config_map("default").items == []


def test_namespaces(api: Api) -> None:
    api.core.create_namespace({"metadata": {"name": "team"}})
    api.create("a", namespace="team", run_seconds=60)
    assert api.core.read_namespace("team").status.phase == "Active"
    api.core.delete_namespace("team")
    assert "team" not in [n.metadata.name for n in api.core.list_namespace().items]
    assert api.core.list_pod_for_all_namespaces().items == []


def test_leases(api: Api) -> None:
    spec = {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2030-01-01T00:00:00.000001Z"}
    made = api.coordination.create_namespaced_lease("default", {"metadata": {"name": "l"}, "spec": spec})
    made.spec.holder_identity = "you"
    assert api.coordination.replace_namespaced_lease("l", "default", made).spec.holder_identity == "you"
    with pytest.raises(client.ApiException) as caught:
        api.coordination.replace_namespaced_lease("l", "default", made)
    assert caught.value.status == 409
    with pytest.raises(client.ApiException) as caught:
        api.coordination.create_namespaced_lease(
            "default", {"metadata": {"name": "m"}, "spec": {"leaseDurationSeconds": 0}}
        )
    assert caught.value.status == 422


def test_priority_classes(api: Api) -> None:
    api.priority_class("high", 100)
    pod = api.create("a", priorityClassName="high", run_seconds=60)
    assert pod.spec.priority == 100
    assert pod.spec.preemption_policy == "PreemptLowerPriority"
    api.scheduling.create_priority_class({"metadata": {"name": "usual"}, "value": 7, "globalDefault": True})
    assert api.create("b", run_seconds=60).spec.priority == 7
    for patch in ({"value": 5}, {"preemptionPolicy": "Never"}):
        with pytest.raises(client.ApiException) as caught:
            api.scheduling.patch_priority_class("high", patch)
        assert "field is immutable" in status_of(caught)["message"]
    with pytest.raises(client.ApiException) as caught:
        api.scheduling.create_priority_class({"metadata": {"name": "x"}, "value": 2_000_000_000})
    assert "maximum allowed value" in status_of(caught)["message"]


def test_secrets_decode_string_data(api: Api) -> None:
    made = api.core.create_namespaced_secret("default", {"metadata": {"name": "s"}, "stringData": {"k": "v"}})
    assert made.data == {"k": "dg=="}
    assert made.type == "Opaque"


def test_events_in_both_api_groups(api: Api) -> None:
    about = {"kind": "Pod", "name": "a", "namespace": "default", "uid": "u"}
    body = {"metadata": {"name": "e1"}, "involvedObject": about, "reason": "Hi", "message": "there", "type": "Normal"}
    api.core.create_namespaced_event("default", body)
    shown = client.EventsV1Api(api.client).read_namespaced_event("e1", "default")
    assert (shown.regarding.name, shown.note, shown.reason) == ("a", "there", "Hi")
    new = {
        "metadata": {"name": "e2"},
        "regarding": about,
        "note": "again",
        "reason": "Ho",
        "type": "Warning",
        "action": "Wave",
        "eventTime": "2030-01-01T00:00:00.000000Z",
        "reportingController": "example.com/me",
        "reportingInstance": "me-1",
    }
    client.EventsV1Api(api.client).create_namespaced_event("default", new)
    old = api.core.read_namespaced_event("e2", "default")
    assert (old.involved_object.name, old.message, old.reporting_component) == ("a", "again", "example.com/me")
    events = client.EventsV1Api(api.client)
    assert events.patch_namespaced_event("e2", "default", {"note": "changed"}).note == "changed"
    assert api.core.read_namespaced_event("e2", "default").message == "changed"
    warnings = api.core.list_namespaced_event("default", field_selector="involvedObject.name=a,type=Warning").items
    assert [e.metadata.name for e in warnings] == ["e2"]


def test_reviews_allow_everything(api: Api) -> None:
    review = {"spec": {"resourceAttributes": {"verb": "create", "resource": "pods"}}}
    answer = client.AuthorizationV1Api(api.client).create_self_subject_access_review(review)
    assert answer.status.allowed is True


def test_versions_and_health(api: Api) -> None:
    assert client.VersionApi(api.client).get_code().git_version == "v1.34.2"
    for path in ("/healthz", "/livez", "/readyz"):
        assert raw(api, path) == (200, b"ok")
    groups = {group.name for group in client.ApisApi(api.client).get_api_versions().groups}
    assert {"coordination.k8s.io", "policy", "embedded.airflow-elastic.io"} <= groups
    resources = api.core.get_api_resources().resources
    assert {"pods", "pods/log", "pods/eviction", "nodes"} <= {resource.name for resource in resources}


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/api/v1/unicorns", 404),
        ("GET", "/apis/example.com/v1/things", 404),
        ("GET", "/api/v1/namespaces/default/nodes", 404),
        ("GET", "/api/v1/namespaces/default/pods/a/unknown", 404),
        ("GET", "/nonsense", 404),
        ("PUT", "/api/v1/namespaces/default/pods", 405),
        ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", 405),
    ],
)
def test_paths_that_are_not_served(api: Api, method: str, path: str, code: int) -> None:
    found, body = raw(api, path, method, b"{}" if method == "PUT" else None)
    assert found == code
    assert json.loads(body)["kind"] == "Status"


def test_what_is_left_out_says_so(api: Api) -> None:
    api.create("a", run_seconds=60)
    deployments = client.AppsV1Api(api.client)
    assert deployments.list_namespaced_deployment("default").items == []
    for attempt in (
        lambda: deployments.create_namespaced_deployment("default", {"metadata": {"name": "d"}}),
        lambda: api.core.create_node({"metadata": {"name": "n"}}),
        lambda: api.core.connect_get_namespaced_pod_attach("a", "default"),
    ):
        with pytest.raises(client.ApiException) as caught:
            attempt()
        assert caught.value.status == 501
        assert "the embedded cluster does not do this" in status_of(caught)["message"]


def test_bodies_that_cannot_be_read(api: Api) -> None:
    path = "/api/v1/namespaces/default/pods"
    protobuf = raw(api, path, "POST", b"k8s\x00", Content_Type="application/vnd.kubernetes.protobuf")
    assert protobuf[0] == 415
    assert json.loads(protobuf[1])["reason"] == "UnsupportedMediaType"
    assert raw(api, path, "POST", b"{", Content_Type="application/json")[0] == 400
    assert raw(api, path, "POST", b"[]", Content_Type="application/json")[0] == 400
    assert raw(api, path, "POST", b"x" * 4_000_000, Content_Type="application/json")[0] == 413
    assert raw(api, path + "?dryRun=Some", "POST", b"{}", Content_Type="application/json")[0] == 400
    assert raw(api, path + "?limit=many")[0] == 400
    yaml = b"metadata: {name: y}\nspec: {containers: [{name: a, image: pause}]}\n"
    assert raw(api, path, "POST", yaml, Content_Type="application/yaml")[0] == 201


def test_deletion_with_grace(api: Api) -> None:
    api.create("a", run_seconds=60, annotations={"airflow-elastic.io/term-seconds": "0.1"})
    api.until_phase("a", "Running")
    marked = api.core.delete_namespaced_pod("a", "default", grace_period_seconds=20)
    assert marked.metadata.deletion_grace_period_seconds == 20
    assert api.pod("a").metadata.deletion_timestamp is not None
    api.until_phase("a", None)


def test_deletion_without_grace_and_of_pods_without_node(api: Api) -> None:
    api.create("a", run_seconds=60)
    api.until_phase("a", "Running")
    api.core.delete_namespaced_pod("a", "default", grace_period_seconds=0)
    assert api.pod("a") is None
    api.create("b", cpu="100", run_seconds=60)
    api.core.delete_namespaced_pod("b", "default")
    assert api.pod("b") is None


def test_binding_by_another_scheduler(api: Api) -> None:
    api.create("a", schedulerName="mine", run_seconds=60)
    target = {"apiVersion": "v1", "kind": "Node", "name": api.node_names()[0]}
    binding = {"metadata": {"name": "a"}, "target": target}
    api.core.create_namespaced_pod_binding("a", "default", binding, _preload_content=False)
    api.until_phase("a", "Running")
    with pytest.raises(client.ApiException) as caught:
        api.core.create_namespaced_pod_binding("a", "default", binding, _preload_content=False)
    assert caught.value.status == 409


def test_gated_pods_wait_until_the_gate_goes(api: Api) -> None:
    api.create("a", schedulingGates=[{"name": "example.com/wait"}], run_seconds=60)
    gated = api.pod("a")
    assert [c.reason for c in gated.status.conditions] == ["SchedulingGated"]
    with pytest.raises(client.ApiException) as caught:
        api.core.patch_namespaced_pod("a", "default", {"spec": {"schedulingGates": [{"name": "example.com/more"}]}})
    assert "only deletion is allowed" in status_of(caught)["message"]
    api.core.patch_namespaced_pod("a", "default", {"spec": {"nodeSelector": {"kubernetes.io/os": "linux"}}})
    api.core.patch_namespaced_pod("a", "default", {"spec": {"schedulingGates": None}})
    api.until_phase("a", "Running")


def test_models_of_the_client_accept_nodes_and_pods(api: Api) -> None:
    node = api.nodes()[0]
    assert node.metadata.labels["airflow-elastic.io/node-pool"] == "fixed"
    assert node.metadata.labels["kubernetes.io/hostname"] == node.metadata.name
    for label in ("node.kubernetes.io/instance-type", "topology.kubernetes.io/zone"):
        assert node.metadata.labels[label]
    info = node.status.node_info.to_dict()
    assert all(info[field] for field in ("machine_id", "system_uuid", "boot_id", "kubelet_version", "os_image"))
    api.create("a", run_seconds=0)
    pod = api.until_phase("a", "Succeeded")
    state = pod.status.container_statuses[0].state.terminated
    assert (state.exit_code, state.reason) == (0, "Completed")
    assert until(lambda: "Started" in api.reasons("a"))


def test_a_shorter_grace_period_replaces_a_longer_one(api: Api) -> None:
    api.create("a", command=["sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"])
    api.until_phase("a", "Running")
    for asked, kept in ((50, 50), (70, 50), (1, 1)):
        marked = api.core.delete_namespaced_pod("a", "default", grace_period_seconds=asked)
        assert marked.metadata.deletion_grace_period_seconds == kept
    api.until_phase("a", None)


def test_finalizers_hold_a_pod_after_its_end(api: Api) -> None:
    body = pod_body("a", run_seconds=60)
    body["metadata"]["finalizers"] = ["example.com/hold"]
    api.core.create_namespaced_pod("default", body)
    api.until_phase("a", "Running")
    api.core.delete_namespaced_pod("a", "default")
    held = api.until_phase("a", "Failed")
    assert held.metadata.deletion_timestamp is not None
    api.core.patch_namespaced_pod("a", "default", {"metadata": {"finalizers": None}})
    assert api.pod("a") is None
