"""``python -m airflow_elastic.embedded``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from embedded_helpers import facts, until
from kubernetes import client, config

COMMAND = [sys.executable, "-m", "airflow_elastic.embedded"]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/status")
    return not status.exists() or "State:\tZ" not in status.read_text()


@contextmanager
def running(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], client.CoreV1Api]]:
    settings = folder / "cluster.yaml"
    settings.write_text("node_pools:\n- name: a\n  initial_nodes: 1\n  max_nodes: 2\n")
    kubeconfig = folder / "kubeconfig"
    process = subprocess.Popen(
        [*COMMAND, "--config", str(settings), "--kubeconfig", str(kubeconfig), *options],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        core = client.CoreV1Api(config.new_client_from_config(str(kubeconfig)))
        yield process, core
    finally:
        process.kill()
        process.wait(10)


def run_pod(core: client.CoreV1Api) -> int:
    container = {"name": "base", "image": "x", "command": ["sh", "-c", "echo $$$$; exec sleep 600"]}
    core.create_namespaced_pod("default", {"metadata": {"name": "p"}, "spec": {"containers": [container]}})

    def log() -> bytes:
        try:
            return bytes(core.read_namespaced_pod_log("p", "default", _preload_content=False).data)
        except client.ApiException:
            return b""

    return int(until(log))


def test_it_serves_until_sigterm_and_leaves_nothing(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    with running(tmp_path, "--event-log", str(log), "--time-speed", "50", "--seed", "7") as (process, core):
        assert [node.metadata.name[:2] for node in core.list_node().items] == ["a-"]
        pid = run_pod(core)
        assert alive(pid)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        until(lambda: not alive(pid))
    assert facts(log, "node_ready")
    assert json.loads((tmp_path / "kubeconfig").read_text())["current-context"] == "embedded"


def test_pods_end_even_if_the_cluster_is_killed(tmp_path: Path) -> None:
    with running(tmp_path) as (process, core):
        pid = run_pod(core)
        process.kill()
        process.wait(10)
        until(lambda: not alive(pid))


def test_it_ends_with_its_parent(tmp_path: Path) -> None:
    script = (
        "import subprocess, sys; "
        f"p = subprocess.Popen([*{COMMAND!r}, '--exit-with-parent'], stdout=subprocess.PIPE, text=True); "
        "print(p.pid, p.stdout.readline(), flush=True)"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True)
    pid = int(answer.stdout.split()[0])
    until(lambda: not alive(pid))


def test_a_wrong_configuration_is_one_line(tmp_path: Path) -> None:
    settings = tmp_path / "cluster.yaml"
    settings.write_text("node_pols: []\n")
    answer = subprocess.run(
        [*COMMAND, "--config", str(settings)], capture_output=True, text=True, timeout=30, check=False
    )
    assert answer.returncode == 1
    assert answer.stderr == "embedded cluster: cluster: unknown key 'node_pols'; did you mean 'node_pools'?\n"
