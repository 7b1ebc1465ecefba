from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config

from realcluster import leftovers
from realcluster.cluster import RealCluster
from realcluster.images import BUSYBOX_IMAGE, HOST_IMAGE
from realcluster.layout import ClusterOptions, Layout

pytestmark = pytest.mark.realcluster


def until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.1)
    raise AssertionError(f"did not become true within {seconds} s")


@pytest.fixture(scope="module")
def core(real_cluster: RealCluster) -> client.CoreV1Api:
    return client.CoreV1Api(config.new_client_from_config(str(real_cluster.kubeconfig())))


def pod(name: str, image: str, command: list[str], **spec: Any) -> dict[str, Any]:
    container = {"name": "base", "image": image, "command": command}
    container.update(spec.pop("container", {}))
    return {"metadata": {"name": name}, "spec": {"restartPolicy": "Never", "containers": [container], **spec}}


def finished(core: client.CoreV1Api, name: str) -> Any:
    def look() -> Any:
        found = core.read_namespaced_pod(name, "default")
        return found if found.status.phase in ("Succeeded", "Failed") else None

    return until(look)


def log(core: client.CoreV1Api, name: str) -> str:
    return str(core.read_namespaced_pod_log(name, "default", _preload_content=False).data.decode())


def test_starts_fast_once_built(real_cluster: RealCluster) -> None:
    assert real_cluster.start_seconds["node r1"] < 60
    assert json.loads(real_cluster.run(["kubectl", "get", "--raw", "/version"]))["gitVersion"] == "v1.36.3"


def test_runs_a_container(core: client.CoreV1Api) -> None:
    core.create_namespaced_pod("default", pod("hello", BUSYBOX_IMAGE, ["sh", "-c", "echo hello; exit 3"]))
    ended = finished(core, "hello")
    assert ended.status.phase == "Failed"
    assert ended.status.container_statuses[0].state.terminated.exit_code == 3
    assert ended.spec.node_name == "r1"
    assert log(core, "hello") == "hello\n"


def test_pods_reach_the_api_server_with_their_account(core: client.CoreV1Api) -> None:
    script = (
        "import os, ssl, urllib.request, urllib.error\n"
        "account = '/var/run/secrets/kubernetes.io/serviceaccount/'\n"
        "token = open(account + 'token').read()\n"
        "address = os.environ['KUBERNETES_SERVICE_HOST']\n"
        "request = urllib.request.Request(f'https://{address}/api/v1/namespaces/default/pods',"
        " headers={'Authorization': 'Bearer ' + token})\n"
        "context = ssl.create_default_context(cafile=account + 'ca.crt')\n"
        "try: urllib.request.urlopen(request, context=context, timeout=5)\n"
        "except urllib.error.HTTPError as error: print(error.code)\n"
    )
    usr = {"name": "usr", "hostPath": {"path": "/usr"}}
    mount = {"volumeMounts": [{"name": "usr", "mountPath": "/usr", "readOnly": True}]}
    body = pod("inside", HOST_IMAGE, ["/usr/bin/python3", "-c", script], volumes=[usr], container=mount)
    core.create_namespaced_pod("default", body)
    finished(core, "inside")
    assert log(core, "inside") == "403\n"


def test_simulated_node_runs_a_pod_for_its_time(core: client.CoreV1Api) -> None:
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    core.create_node(
        {
            "metadata": {"name": "fake", "annotations": {"kwok.x-k8s.io/node": "fake"}},
            "spec": {"taints": [{"key": "fake", "effect": "NoSchedule"}]},
            "status": {"capacity": capacity, "allocatable": capacity},
        }
    )
    body = pod("short", "no/image:1", ["never"], tolerations=[{"key": "fake", "operator": "Exists"}])
    body["spec"]["nodeName"] = "fake"
    body["metadata"]["annotations"] = {"airflow-elastic.io/run-seconds": "0.5"}
    try:
        core.create_namespaced_pod("default", body)
        assert finished(core, "short").status.phase == "Succeeded"
    finally:
        core.delete_node("fake")


def test_a_killed_component_comes_back(real_cluster: RealCluster, core: client.CoreV1Api) -> None:
    file = real_cluster.layout.pids / "kube-scheduler"
    before = file.read_text()
    real_cluster.signal("kube-scheduler", signal.SIGKILL)
    until(lambda: file.exists() and file.read_text() not in ("", before))
    core.create_namespaced_pod("default", pod("again", BUSYBOX_IMAGE, ["true"]))
    assert finished(core, "again").status.phase == "Succeeded"


def test_commands_run_inside_and_hand_on_exit_code_and_signals(real_cluster: RealCluster) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failure:
        real_cluster.run(["sh", "-c", "exit 5"])
    assert failure.value.returncode == 5
    script = "trap 'echo told; exit 0' TERM; echo up; while :; do sleep 0.1; done"
    process = real_cluster.popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.terminate()
    assert process.communicate(timeout=10) == ("told\n", None)


def test_all_of_it_ends_when_its_owner_is_killed(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "from realcluster.cluster import RealCluster\n"
        "from realcluster.layout import ClusterOptions\n"
        "cluster = RealCluster(ClusterOptions())\n"
        "cluster.start()\n"
        "print(cluster.layout.root, cluster.layout.programs, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=120, cwd=tmp_path
    )
    root, programs = map(Path, done.stdout.split())
    layout = Layout(root, programs)
    until(lambda: not root.exists())
    assert not [group for group in layout.cgroups() if group.exists()]
    assert str(root) not in Path("/proc/mounts").read_text()
    assert not _processes_of(root)


def test_a_killed_keeper_ends_the_cluster_and_the_next_one_clears_up() -> None:
    cluster = RealCluster(ClusterOptions(real_nodes=0))
    cluster.start()
    root = cluster.layout.root
    keeper = cluster._keeper
    assert keeper is not None
    keeper.kill()
    keeper.wait()
    until(lambda: not _processes_of(root))
    assert root.exists()
    until(lambda: root in leftovers.sweep() or not root.exists())
    assert not root.exists()


def _processes_of(root: Path) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if str(root).encode() in command:
            found.append(int(folder.name))
    return found
