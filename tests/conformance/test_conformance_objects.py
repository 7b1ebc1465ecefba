"""Creating, reading, replacing and deleting: what holds for every object."""

from __future__ import annotations

import pytest

from conformance.clusters import Cluster, until
from conformance.pods import Namespace, pod
from conformance.rest import Object


def config_map(name: str, value: str = "1", **labels: str) -> Object:
    return {"metadata": {"name": name, "labels": labels}, "data": {"value": value}}


@pytest.fixture
def maps(ns: Namespace) -> str:
    return f"{ns.path}/configmaps"


def test_creation_fills_in_what_the_server_owns(ns: Namespace, maps: str) -> None:
    body = config_map("one")
    body["metadata"].update(uid="mine", creationTimestamp="2001-01-01T00:00:00Z", generation=9)
    made = ns.rest.made(maps, body)
    assert (made["kind"], made["apiVersion"]) == ("ConfigMap", "v1")
    assert made["metadata"]["uid"] != "mine"
    assert not made["metadata"]["creationTimestamp"].startswith("2001")
    assert made["metadata"]["namespace"] == ns.name
    assert int(made["metadata"]["resourceVersion"]) > 0


def test_generated_names(ns: Namespace, maps: str) -> None:
    made = ns.rest.made(maps, {"metadata": {"generateName": "job-"}})
    assert made["metadata"]["name"].startswith("job-")
    assert len(made["metadata"]["name"]) == len("job-") + 5


def test_a_second_creation_is_a_conflict(ns: Namespace, maps: str) -> None:
    ns.rest.made(maps, config_map("one"))
    again = ns.rest.post(maps, config_map("one"))
    assert (again.code, again.reason) == (409, "AlreadyExists")
    assert again.message == 'configmaps "one" already exists'
    assert again.body["details"] == {"name": "one", "kind": "configmaps"}


def test_a_creation_with_a_version_is_refused(ns: Namespace, maps: str) -> None:
    body = config_map("one")
    body["metadata"]["resourceVersion"] = "5"
    assert ns.rest.post(maps, body).code in (400, 500)
    assert ns.rest.get(f"{maps}/one").code == 404


def test_what_does_not_exist(ns: Namespace, maps: str) -> None:
    for answer in (
        ns.rest.get(f"{maps}/no"),
        ns.rest.put(f"{maps}/no", config_map("no") | {"metadata": {"name": "no", "resourceVersion": "5"}}),
        ns.rest.patch(f"{maps}/no", {"data": {}}),
        ns.rest.delete(f"{maps}/no"),
    ):
        assert (answer.code, answer.reason) == (404, "NotFound"), answer
        assert answer.message == 'configmaps "no" not found'
        assert answer.body["details"] == {"name": "no", "kind": "configmaps"}


def test_a_namespace_that_does_not_exist(ns: Namespace) -> None:
    answer = ns.rest.post("/api/v1/namespaces/not-there/configmaps", config_map("one"))
    assert (answer.code, answer.reason) == (404, "NotFound")
    assert answer.message == 'namespaces "not-there" not found'
    assert ns.rest.get("/api/v1/namespaces/not-there/configmaps").names == []


def test_the_namespace_of_the_body_has_to_be_that_of_the_path(ns: Namespace, maps: str) -> None:
    body = config_map("one")
    body["metadata"]["namespace"] = "default"
    answer = ns.rest.post(maps, body)
    assert (answer.code, answer.reason) == (400, "BadRequest")
    assert "does not match the namespace" in answer.message


def test_invalid_names_say_which_field(ns: Namespace, maps: str) -> None:
    answer = ns.rest.post(maps, config_map("Not_A_Name"))
    assert (answer.code, answer.reason) == (422, "Invalid")
    assert 'ConfigMap "Not_A_Name" is invalid: metadata.name: Invalid value' in answer.message
    assert answer.body["details"]["causes"][0]["field"] == "metadata.name"


def test_a_body_that_is_no_object(ns: Namespace, maps: str) -> None:
    assert ns.rest.post(maps, "{not json").code == 400
    assert ns.rest.post(maps, {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "x"}}).code == 400


def test_replacing_needs_no_version_but_honours_it(ns: Namespace, maps: str) -> None:
    first = ns.rest.made(maps, config_map("one"))
    assert ns.rest.put(f"{maps}/one", config_map("one", "2")).body["data"] == {"value": "2"}
    stale = {**config_map("one", "3"), "metadata": first["metadata"]}
    answer = ns.rest.put(f"{maps}/one", stale)
    assert (answer.code, answer.reason) == (409, "Conflict")
    assert answer.message == (
        'Operation cannot be fulfilled on configmaps "one": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    assert ns.rest.get(f"{maps}/one").body["data"] == {"value": "2"}


def test_replacing_removes_what_is_left_out(ns: Namespace, maps: str) -> None:
    ns.rest.made(maps, config_map("one", tier="a"))
    replaced = ns.rest.put(f"{maps}/one", {"metadata": {"name": "one"}, "data": {"other": "x"}}).body
    assert replaced["data"] == {"other": "x"}
    assert "labels" not in replaced["metadata"]


def test_a_change_that_changes_nothing_keeps_the_version(ns: Namespace, maps: str) -> None:
    made = ns.rest.made(maps, config_map("one"))
    same = ns.rest.patch(f"{maps}/one", {"data": {"value": "1"}})
    assert same.version == made["metadata"]["resourceVersion"]


def test_another_uid_is_a_conflict(ns: Namespace, maps: str) -> None:
    ns.rest.made(maps, config_map("one"))
    body = config_map("one")
    body["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    assert ns.rest.put(f"{maps}/one", body).code == 409


def test_deletion_with_preconditions(ns: Namespace, maps: str) -> None:
    made = ns.rest.made(maps, config_map("one"))

    def options(**preconditions: str) -> Object:
        return {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": preconditions}

    wrong = ns.rest.delete(f"{maps}/one", options(uid="00000000-0000-0000-0000-000000000000"))
    assert (wrong.code, wrong.reason) == (409, "Conflict")
    old = ns.rest.delete(f"{maps}/one", options(resourceVersion="1"))
    assert (old.code, old.reason) == (409, "Conflict")
    assert ns.rest.delete(f"{maps}/one", options(uid=made["metadata"]["uid"])).code == 200
    assert ns.rest.get(f"{maps}/one").code == 404


def test_deletion_answers_with_a_status(ns: Namespace, maps: str) -> None:
    made = ns.rest.made(maps, config_map("one"))
    answer = ns.rest.delete(f"{maps}/one")
    assert (answer.code, answer.body["kind"], answer.body["status"]) == (200, "Status", "Success")
    assert answer.body["details"] == {"name": "one", "kind": "configmaps", "uid": made["metadata"]["uid"]}


def test_deleting_a_collection_by_selector(ns: Namespace, maps: str) -> None:
    for name, tier in (("a", "x"), ("b", "x"), ("c", "y")):
        ns.rest.made(maps, config_map(name, tier=tier))
    answer = ns.rest.delete(maps, labelSelector="tier=x")
    assert answer.code == 200
    assert ns.rest.get(maps, labelSelector="tier").names == ["c"]


def test_finalizers_hold_an_object_until_they_are_gone(ns: Namespace, maps: str) -> None:
    body = config_map("held")
    body["metadata"]["finalizers"] = ["example.com/wait"]
    ns.rest.made(maps, body)
    answer = ns.rest.delete(f"{maps}/held")
    assert answer.code == 200
    found = ns.rest.get(f"{maps}/held")
    assert found.code == 200
    assert found.body["metadata"]["deletionTimestamp"]
    added = ns.rest.patch(f"{maps}/held", {"metadata": {"finalizers": ["example.com/wait", "example.com/more"]}})
    assert (added.code, added.reason) == (422, "Invalid")
    assert ns.rest.patch(f"{maps}/held", {"metadata": {"finalizers": None}}).code == 200
    assert ns.rest.get(f"{maps}/held").code == 404


def test_dry_runs_check_everything_and_change_nothing(ns: Namespace, maps: str) -> None:
    made = ns.rest.post(maps, config_map("ghost"), dryRun="All")
    assert made.code == 201
    assert made.body["metadata"]["uid"]
    assert ns.rest.get(f"{maps}/ghost").code == 404
    assert ns.rest.post(maps, config_map("Bad_Name"), dryRun="All").code == 422

    ns.rest.made(maps, config_map("one"))
    changed = ns.rest.patch(f"{maps}/one", {"data": {"value": "2"}}, dryRun="All")
    assert changed.body["data"] == {"value": "2"}
    assert ns.rest.put(f"{maps}/one", config_map("one", "3"), dryRun="All").code == 200
    assert ns.rest.delete(f"{maps}/one", dryRun="All").code == 200
    assert ns.rest.get(f"{maps}/one").body["data"] == {"value": "1"}
    assert ns.rest.post(maps, config_map("x"), dryRun="Some").code in (400, 422)


def test_dry_run_of_a_pod_is_admitted_as_a_pod(ns: Namespace) -> None:
    refused = ns.rest.post(ns.pods, pod("ghost", priorityClassName="not-there"), dryRun="All")
    assert (refused.code, refused.reason) == (403, "Forbidden")
    made = ns.rest.post(ns.pods, pod("ghost"), dryRun="All")
    assert made.code == 201
    assert made.body["spec"]["terminationGracePeriodSeconds"] == 30
    assert ns.get("ghost").code == 404


def test_label_selectors(ns: Namespace, maps: str) -> None:
    for name, labels in (
        ("a", {"tier": "x", "zone": "1"}), ("b", {"tier": "y"}),
        ("c", {"zone": "2"}), ("d", {"tier": "x", "zone": "2"}),
    ):  # fmt: skip
        ns.rest.made(maps, config_map(name, **labels, own="yes"))

    def names(selector: str) -> list[str]:
        return ns.rest.get(maps, labelSelector=f"own,{selector}").names

    assert names("tier=x") == ["a", "d"]
    assert names("tier==x") == ["a", "d"]
    # Not equal is also true of what has no such label.
    assert names("tier!=x") == ["b", "c"]
    assert names("tier in (x, y)") == ["a", "b", "d"]
    assert names("tier notin (x)") == ["b", "c"]
    assert names("tier") == ["a", "b", "d"]
    assert names("!tier") == ["c"]
    assert names("tier=x,zone=2") == ["d"]
    assert names("zone>1") == ["c", "d"]
    assert ns.rest.get(maps, labelSelector="tier in x").code == 400
    assert ns.rest.get(maps, labelSelector="a==b==c").code == 400


def test_field_selectors_of_pods(cluster: Cluster, ns: Namespace) -> None:
    node = cluster.node()
    ns.place(node, "placed")
    ns.create(pod("waiting", schedulerName="nobody"))
    ns.until_phase("placed", "Running")

    def names(selector: str) -> list[str]:
        return ns.rest.get(ns.pods, fieldSelector=selector).names

    assert names(f"spec.nodeName={node}") == ["placed"]
    assert names("spec.nodeName=") == ["waiting"]
    assert names("spec.nodeName!=") == ["placed"]
    assert names("status.phase=Running") == ["placed"]
    assert names("status.phase!=Running") == ["waiting"]
    assert names("metadata.name=placed,status.phase=Running") == ["placed"]
    assert names("metadata.name!=placed") == ["waiting"]
    refused = ns.rest.get(ns.pods, fieldSelector="spec.priority=0")
    assert refused.code == 400
    assert "field label not supported: spec.priority" in refused.message


def test_events_are_selected_by_what_they_are_about(ns: Namespace) -> None:
    ns.create(pod("nowhere", nodeSelector={"no": "where"}))
    until(lambda: ns.reasons("nowhere"), 20, "an event")
    uid = ns.pod("nowhere")["metadata"]["uid"]
    selector = f"involvedObject.name=nowhere,involvedObject.uid={uid},involvedObject.kind=Pod,type=Warning"
    items = ns.rest.get(f"{ns.path}/events", fieldSelector=selector).body["items"]
    assert {item["reason"] for item in items} == {"FailedScheduling"}
    assert ns.rest.get(f"{ns.path}/events", fieldSelector="involvedObject.name=other").names == []


def test_a_new_namespace_has_an_account_and_ends_with_its_content(ns: Namespace) -> None:
    name = f"{ns.name}-more"
    path = f"/api/v1/namespaces/{name}"
    made = ns.rest.made("/api/v1/namespaces", {"metadata": {"name": name}})
    assert made["status"]["phase"] == "Active"
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": name}
    until(lambda: ns.rest.get(f"{path}/serviceaccounts/default").code == 200, 20, "the service account")
    ns.rest.made(f"{path}/configmaps", config_map("one"))
    assert ns.rest.delete(path).code == 200
    until(lambda: ns.rest.get(path).code == 404, 30, "the namespace is gone")
    assert ns.rest.get(f"{path}/configmaps").names == []


def test_owners_take_what_they_own_with_them(ns: Namespace, maps: str) -> None:
    owner = ns.rest.made(maps, config_map("owner"))
    owned = config_map("owned")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    owned["metadata"]["ownerReferences"] = [reference]
    ns.rest.made(maps, owned)
    ns.rest.delete(f"{maps}/owner")
    until(lambda: ns.rest.get(f"{maps}/owned").code == 404, 30, "garbage collection")


def test_generations_count_changes_of_the_spec_only(cluster: Cluster, ns: Namespace) -> None:
    made = ns.create(pod("one", schedulerName="nobody"))
    assert made["metadata"]["generation"] == 1
    labelled = ns.rest.patch(f"{ns.pods}/one", {"metadata": {"labels": {"a": "b"}}}).body
    assert labelled["metadata"]["generation"] == 1
    changed = ns.rest.patch(f"{ns.pods}/one", {"spec": {"activeDeadlineSeconds": 100}}).body
    assert changed["metadata"]["generation"] == 2
