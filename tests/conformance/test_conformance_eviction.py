"""Evictions and the budgets that limit them; drain."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest

from conformance.clusters import Cluster, until
from conformance.pods import Namespace, condition, status_of
from conformance.rest import Answer, Object


def evict(ns: Namespace, name: str, **options: object) -> Answer:
    body: Object = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": ns.name}}
    if options:
        body["deleteOptions"] = options
    return ns.rest.post(f"{ns.pods}/{name}/eviction", body)


def budget(ns: Namespace, name: str, healthy: int | None = None, **spec: object) -> str:
    """Make a budget over the pods labelled app=guarded; returns its path once its status is there."""
    path = f"/apis/policy/v1/namespaces/{ns.name}/poddisruptionbudgets"
    body: Object = {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": "guarded"}}, **spec}}
    ns.rest.made(path, body)

    def counted() -> bool:
        status = ns.rest.get(f"{path}/{name}").body.get("status", {})
        return status.get("observedGeneration") == 1 and healthy in (None, status.get("currentHealthy"))

    until(counted, 20, f"the status of {name}")
    return f"{path}/{name}"


def gone(ns: Namespace, path: str) -> bool:
    return ns.rest.get(path).code == 404


def guarded(ns: Namespace, node: str, *names: str) -> None:
    for name in names:
        ns.place(node, name, labels={"app": "guarded"})
    for name in names:
        ns.until_phase(name, "Running")


def test_eviction_says_why_and_deletes(cluster: Cluster, ns: Namespace) -> None:
    ns.run("one", "trap 'exit 9' TERM; echo up; while :; do sleep 0.1; done")
    until(lambda: ns.phase("one") == "Running" and "up" in ns.log("one"), 20, "it runs")
    with ns.rest.watch(ns.pods, resourceVersion=ns.rest.get(ns.pods).version) as watch:
        answer = evict(ns, "one")
        assert (answer.code, answer.body["status"]) == (201, "Success")
        marked = watch.until(lambda _, obj: bool(condition(obj, "DisruptionTarget")))
        target = condition(marked, "DisruptionTarget")
        assert (target["status"], target["reason"]) == ("True", "EvictionByEvictionAPI")
        assert target["message"] == "Eviction API: evicting"
        gone = watch.until(lambda kind, _: kind == "DELETED")
    assert status_of(gone)["state"]["terminated"]["exitCode"] == 9
    assert gone["status"]["phase"] == "Failed"


def test_the_grace_of_an_eviction(ns: Namespace) -> None:
    ns.run("deaf", "trap '' TERM; echo up; while :; do sleep 0.1; done", terminationGracePeriodSeconds=100)
    until(lambda: ns.phase("deaf") == "Running" and "up" in ns.log("deaf"), 20, "it runs")
    assert evict(ns, "deaf", gracePeriodSeconds=1).code == 201
    ns.until_gone("deaf", 20)


def test_eviction_of_what_is_not_there(ns: Namespace) -> None:
    assert evict(ns, "none").code == 404


def test_eviction_of_what_waits_or_has_ended(cluster: Cluster, ns: Namespace) -> None:
    node = cluster.node()
    ns.place(node, "ended", seconds=0.1)
    ns.finished("ended")
    assert evict(ns, "ended").code == 201
    ns.until_gone("ended")


def test_a_dry_run_evicts_nobody(cluster: Cluster, ns: Namespace) -> None:
    node = cluster.node()
    guarded(ns, node, "one")
    assert evict(ns, "one", dryRun=["All"]).code == 201
    assert not condition(ns.pod("one"), "DisruptionTarget")
    assert ns.phase("one") == "Running"


def test_a_budget_refuses_with_429(cluster: Cluster, ns: Namespace) -> None:
    node = cluster.node()
    guarded(ns, node, "one", "two")
    path = budget(ns, "guard", 2, minAvailable=2)
    answer = evict(ns, "one")
    assert (answer.code, answer.reason) == (429, "TooManyRequests")
    assert answer.message == "Cannot evict pod as it would violate the pod's disruption budget."
    [cause] = answer.body["details"]["causes"]
    assert cause == {
        "reason": "DisruptionBudget",
        "message": "The disruption budget guard needs 2 healthy pods and has 2 currently",
    }
    assert not condition(ns.pod("one"), "DisruptionTarget")
    assert ns.rest.patch(path, {"spec": {"minAvailable": 1}}).code == 200
    until(lambda: ns.rest.get(path).body["status"]["disruptionsAllowed"] == 1, 20, "one may go")
    assert evict(ns, "one").code == 201
    ns.until_gone("one")
    assert evict(ns, "two").code == 429
    status = until(
        lambda: (found := ns.rest.get(path).body["status"])["expectedPods"] == 1 and found, 20, "the new count"
    )
    assert (status["currentHealthy"], status["desiredHealthy"], status["disruptionsAllowed"]) == (1, 1, 0)


def test_shares_of_pods_without_a_controller_are_shares_of_nothing(cluster: Cluster, ns: Namespace) -> None:
    """A percentage is of the controller's replicas. Pods of tasks have none: such a budget forbids every eviction."""
    node = cluster.node()
    guarded(ns, node, "one", "two", "three")
    for name, spec in (("share", {"minAvailable": "60%"}), ("most", {"maxUnavailable": 1})):
        path = budget(ns, name, 3, **spec)
        status = ns.rest.get(path).body["status"]
        assert (status["desiredHealthy"], status["disruptionsAllowed"], status["expectedPods"]) == (0, 0, 0), name
        assert evict(ns, "one").code == 429, name
        ns.rest.delete(path)
        until(partial(gone, ns, path), 10, "the budget is gone")


def test_budgets_do_not_count_other_pods(cluster: Cluster, ns: Namespace) -> None:
    node = cluster.node()
    guarded(ns, node, "one")
    ns.place(node, "other")
    ns.until_phase("other", "Running")
    budget(ns, "guard", 1, minAvailable=1)
    assert evict(ns, "other").code == 201
    assert evict(ns, "one").code == 429


def test_two_budgets_over_one_pod_are_an_error(cluster: Cluster, ns: Namespace) -> None:
    node = cluster.node()
    guarded(ns, node, "one")
    budget(ns, "first", 1, minAvailable=0)
    budget(ns, "second", 1, minAvailable=0)
    answer = evict(ns, "one")
    assert (answer.code, answer.reason) == (500, "")
    assert "more than one PodDisruptionBudget" in answer.message


def test_a_pod_that_is_not_ready_may_go_while_enough_others_are(cluster: Cluster, ns: Namespace) -> None:
    node = cluster.node()
    guarded(ns, node, "well")
    budget(ns, "guard", 1, minAvailable=1)
    ns.run("ill", "sleep 60", labels={"app": "guarded"}, terminationGracePeriodSeconds=0, container={
        "readinessProbe": {"exec": {"command": ["false"]}, "periodSeconds": 1},
    })  # fmt: skip
    if cluster.name == "embedded":
        # There are no probes on the embedded cluster, on purpose; what a failed one would write is written here.
        ns.until_phase("ill", "Running")
        unready = [{"type": "Ready", "status": "False"}]
        body = {"status": {"conditions": unready}}
        ns.rest.patch(f"{ns.pods}/ill/status", body, "application/strategic-merge-patch+json")
    ns.until_condition("ill", "Ready", "False")
    ns.until_phase("ill", "Running")
    assert evict(ns, "ill").code == 201
    assert evict(ns, "well").code == 429


def test_deletion_asks_no_budget(cluster: Cluster, ns: Namespace) -> None:
    node = cluster.node()
    guarded(ns, node, "one")
    budget(ns, "guard", 1, minAvailable=1)
    assert ns.rest.delete(f"{ns.pods}/one").code == 200
    ns.until_gone("one")


def test_a_budget_may_not_say_both(ns: Namespace) -> None:
    body = {"metadata": {"name": "both"}, "spec": {"minAvailable": 1, "maxUnavailable": 1, "selector": {}}}
    answer = ns.rest.post(f"/apis/policy/v1/namespaces/{ns.name}/poddisruptionbudgets", body)
    assert (answer.code, answer.reason) == (422, "Invalid")


def kubectl(cluster: Cluster, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "KUBECACHEDIR": str(folder)}
    command = ["kubectl", "--cache-dir", str(folder), *words]
    return subprocess.run(command, env=environment, text=True, capture_output=True, timeout=120)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_drain_waits_for_the_budget(cluster: Cluster, ns: Namespace, tmp_path: Path) -> None:
    node = cluster.node()
    guarded(ns, node, "one")
    ns.place(node, "free")
    ns.until_phase("free", "Running")
    path = budget(ns, "guard", 1, minAvailable=1)
    done = kubectl(cluster, tmp_path, "drain", node, "--force", "--timeout=3s")
    assert done.returncode != 0
    assert "violate the pod's disruption budget" in done.stdout + done.stderr
    assert ns.phase("one") == "Running"
    assert cluster.rest.get(f"/api/v1/nodes/{node}").body["spec"]["unschedulable"]
    ns.rest.delete(path)
    done = kubectl(cluster, tmp_path, "drain", node, "--force", "--timeout=30s")
    assert done.returncode == 0, done
    assert ns.get("one").code == 404
    assert ns.get("free").code == 404
    assert kubectl(cluster, tmp_path, "uncordon", node).returncode == 0
    ns.place(node, "after")
    ns.until_phase("after", "Running")
