"""kubectl, unmodified."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from embedded_helpers import Api, cluster_of, until

from airflow_elastic.embedded import NodePoolConfig

pytestmark = pytest.mark.skipif(
    shutil.which("kubectl") is None, reason="kubectl is not installed: NOTHING about kubectl has been tested"
)


class Kubectl:
    def __init__(self, api: Api, folder: Path) -> None:
        self.api = api
        self._kubeconfig = str(api.cluster.write_kubeconfig(folder / "kubeconfig"))
        self._environment = {**os.environ, "HOME": str(folder)}

    def run(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["kubectl", "--kubeconfig", self._kubeconfig, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=self._environment,
        )

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        answer = self.run(*arguments, stdin=stdin)
        assert answer.returncode == 0, (arguments, answer.stdout, answer.stderr)
        return answer.stdout


@pytest.fixture
def kubectl(tmp_path: Path) -> Iterator[Kubectl]:
    with cluster_of(NodePoolConfig("fixed", initial_nodes=2, max_nodes=4)) as cluster:
        api = Api(cluster)
        yield Kubectl(api, tmp_path)
        api.close()


def test_tables(kubectl: Kubectl) -> None:
    kubectl.api.create("a", run_seconds=60)
    kubectl.api.until_phase("a", "Running")
    header, row = kubectl("get", "pods", "-o", "wide").splitlines()
    assert header.split()[:5] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row.split()[:4] == ["a", "1/1", "Running", "0"]
    assert row.split()[6] in kubectl.api.node_names()
    assert len(kubectl("get", "nodes", "--no-headers").splitlines()) == 2
    assert kubectl("get", "np", "--no-headers").split()[:6] == ["fixed", "2", "2", "2", "0", "0-4"]
    assert "default" in kubectl("get", "ns")
    assert "system-node-critical" in kubectl("get", "priorityclasses")
    assert "Scheduled" in kubectl("get", "events")
    assert "a" in kubectl("get", "all", "--no-headers").split()
    assert json.loads(kubectl("get", "pod", "a", "-o", "json"))["status"]["phase"] == "Running"


def test_describe(kubectl: Kubectl) -> None:
    kubectl.api.create("a", run_seconds=60, cpu="1")
    kubectl.api.until_phase("a", "Running")
    assert "Successfully assigned default/a" in kubectl("describe", "pod", "a")
    node = kubectl.api.pod("a").spec.node_name
    shown = kubectl("describe", "node", node)
    assert "cpu                1 (25%)" in shown
    assert "NodeReady" in shown
    assert "RenewTime" in shown
    assert "Preemption" in kubectl("describe", "priorityclass", "system-node-critical")
    assert "Max Nodes" in kubectl("describe", "nodepool", "fixed")


def test_apply_patch_label_delete(kubectl: Kubectl) -> None:
    manifest = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {run: %s}}\n"
        "spec:\n  containers:\n  - {name: m, image: pause}\n"
    )
    assert "created" in kubectl("apply", "-f", "-", stdin=manifest % "one")
    assert "configured" in kubectl("apply", "-f", "-", stdin=manifest % "two")
    assert "unchanged" in kubectl("apply", "-f", "-", stdin=manifest % "two")
    assert kubectl("get", "pods", "-l", "run=two,!other", "-o", "name").strip() == "pod/a"
    kubectl("label", "pod", "a", "more=1")
    kubectl("annotate", "pod", "a", "note=hello")
    assert kubectl("get", "pod", "a", "-o", "jsonpath={.metadata.annotations.note}") == "hello"
    settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n"
    kubectl("apply", "-f", "-", stdin=settings)
    kubectl("patch", "configmap", "c", "--type=json", "-p", '[{"op": "replace", "path": "/data/a", "value": "z"}]')
    kubectl("patch", "configmap", "c", "-p", '{"data": {"n": "1"}}')
    assert json.loads(kubectl("get", "configmap", "c", "-o", "jsonpath={.data}")) == {"a": "z", "n": "1"}
    kubectl("delete", "pod", "a", "--timeout=10s")
    assert kubectl.api.pod("a") is None
    kubectl("create", "--dry-run=server", "-f", "-", stdin=manifest % "one")
    assert kubectl.api.pod("a") is None


def test_run_logs_wait_exec(kubectl: Kubectl) -> None:
    script = "echo one; sleep 0.2; echo two"
    kubectl("run", "a", "--image=x", "--restart=Never", "--command", "--", "sh", "-c", script)
    until(lambda: kubectl.api.phase("a") != "Pending")
    assert kubectl("logs", "-f", "a") == "one\ntwo\n"
    kubectl("wait", "pod/a", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=10s")
    kubectl("run", "b", "--image=x", "--command", "--", "sleep", "60")
    kubectl("wait", "pod/b", "--for=condition=Ready", "--timeout=10s")
    assert kubectl("exec", "b", "--", "echo", "out") == "out\n"
    assert kubectl("exec", "-i", "b", "--", "cat", stdin="through\n") == "through\n"
    assert kubectl.run("exec", "b", "--", "sh", "-c", "exit 5").returncode == 5


def test_cordon_taint_drain_scale(kubectl: Kubectl) -> None:
    node = kubectl.api.node_names()[0]
    kubectl.api.create("a", nodeName=node, run_seconds=60)
    kubectl.api.until_phase("a", "Running")
    kubectl("drain", node, "--force", "--ignore-daemonsets", "--timeout=20s")
    assert "SchedulingDisabled" in kubectl("get", "node", node)
    assert kubectl.api.pod("a") is None
    kubectl("uncordon", node)
    kubectl("taint", "nodes", node, "k=v:NoSchedule")
    assert "k=v:NoSchedule" in kubectl("describe", "node", node)
    kubectl("taint", "nodes", node, "k-")
    kubectl("scale", "nodepool/fixed", "--replicas=3")
    until(lambda: len(kubectl.api.ready_nodes()) == 3)
    refused = kubectl.run("scale", "nodepool/fixed", "--replicas=30")
    assert refused.returncode == 1
    assert "must be at most spec.maxNodes (4)" in refused.stderr
    kubectl("delete", "node", node)
    assert node not in kubectl.api.node_names()


def test_typed_creation_and_reviews(kubectl: Kubectl) -> None:
    # kubectl sends these as protobuf, which is decoded for the few kinds that it makes this way.
    kubectl("create", "namespace", "team")
    kubectl("create", "configmap", "c", "--from-literal=a=b", "--from-literal=c=d", "-n", "team")
    assert kubectl.api.core.read_namespaced_config_map("c", "team").data == {"a": "b", "c": "d"}
    kubectl("create", "secret", "generic", "s", "--from-literal=k=v")
    assert kubectl.api.core.read_namespaced_secret("s", "default").data == {"k": "dg=="}
    kubectl("create", "priorityclass", "low", "--value=-5", "--description=give way", "--preemption-policy=Never")
    made = kubectl.api.scheduling.read_priority_class("low")
    assert (made.value, made.description, made.preemption_policy) == (-5, "give way", "Never")
    kubectl("create", "pdb", "keep", "--selector=app in (x, y)", "--min-available=50%")
    budget = kubectl.api.policy.read_namespaced_pod_disruption_budget("keep", "default")
    assert budget.spec.min_available == "50%"
    assert budget.spec.selector.match_expressions[0].values == ["x", "y"]
    kubectl("create", "quota", "q", "--hard=pods=5,cpu=2")
    assert kubectl.api.core.read_namespaced_resource_quota("q", "default").spec.hard == {"pods": "5", "cpu": "2"}
    kubectl("create", "serviceaccount", "me")
    assert kubectl("auth", "can-i", "create", "pods").strip() == "yes"
    refused = kubectl.run("create", "deployment", "d", "--image=x")
    assert refused.returncode == 1
    assert "does not do this" in refused.stderr


def test_discovery_commands(kubectl: Kubectl) -> None:
    assert "nodepools" in kubectl("api-resources")
    assert "v1.34" in kubectl("version")
    assert "embedded.airflow-elastic.io/v1" in kubectl("api-versions")
    assert kubectl("get", "--raw", "/readyz") == "ok"
    assert "KIND:       NodePool" in kubectl("explain", "nodepools")
