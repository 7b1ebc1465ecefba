"""Pods as local processes, and pods that only last."""

from __future__ import annotations

import os
import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import websocket
from embedded_helpers import Api, cluster_of, until
from kubernetes import client
from kubernetes.stream import stream

from airflow_elastic.embedded import NodePoolConfig


def shell(script: str) -> list[str]:
    return ["/bin/sh", "-c", script]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A zombie is dead; it only waits to be counted.
    status = Path(f"/proc/{pid}/status")
    return not status.exists() or "State:\tZ" not in status.read_text()


def terminated(pod: Any) -> Any:
    return pod.status.container_statuses[0].state.terminated


def test_a_command_runs_with_its_environment(api: Api) -> None:
    api.core.create_namespaced_config_map("default", {"metadata": {"name": "c"}, "data": {"KEY": "from-map"}})
    api.core.create_namespaced_secret("default", {"metadata": {"name": "s"}, "stringData": {"PASS": "word"}})
    container = {
        "env": [
            {"name": "A", "value": "one"},
            {"name": "B", "value": "$(A)-two $$(A)"},
            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "LABEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['run']"}}},
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "MAP", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "KEY"}}},
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "requests.cpu"}}},
            {"name": "NONE", "valueFrom": {"secretKeyRef": {"name": "no", "key": "x", "optional": True}}},
        ],
        "envFrom": [{"secretRef": {"name": "s"}, "prefix": "SECRET_"}],
        "resources": {"requests": {"cpu": "1500m"}},
        "args": ["$(A)"],
    }
    script = 'echo "$A|$B|$POD|$LABEL|$MAP|$CPU|${NONE-unset}|$SECRET_PASS|$0"; test -n "$NODE"'
    api.create("a", command=shell(script), container=container, labels={"run": "7"})
    pod = api.until_phase("a", "Succeeded")
    assert api.log("a") == "one|one-two $(A)|a|7|from-map|2|unset|word|one\n"
    assert terminated(pod).exit_code == 0


def test_failure_exit_code_and_termination_message(api: Api) -> None:
    api.create("a", command=shell("echo why > /dev/termination-log; exit 3"))
    state = terminated(api.until_phase("a", "Failed"))
    assert (state.exit_code, state.reason, state.message) == (3, "Error", "why\n")
    api.create(
        "b", command=shell("echo last words; exit 1"), container={"terminationMessagePolicy": "FallbackToLogsOnError"}
    )
    assert terminated(api.until_phase("b", "Failed")).message == "last words\n"


def test_killed_by_a_signal(api: Api) -> None:
    api.create("a", command=shell("kill -9 $$$$"))
    assert terminated(api.until_phase("a", "Failed")).exit_code == 137


def test_logs_with_timestamps_tail_and_since(api: Api) -> None:
    api.create("a", command=shell("echo one; echo two; printf three; exit 0"))
    api.until_phase("a", "Succeeded")
    assert api.log("a") == "one\ntwo\nthree"
    assert api.log("a", tail_lines=1) == "three"
    assert api.log("a", tail_lines=0) == ""
    assert api.log("a", since_seconds=100) == "one\ntwo\nthree"
    assert api.log("a", limit_bytes=5) == "one\nt"
    stamped = api.log("a", timestamps=True).splitlines()
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z \w+", line) for line in stamped)
    with pytest.raises(client.ApiException) as caught:
        api.log("a", container="other")
    assert caught.value.status == 400


def test_following_a_log_ends_with_the_container(api: Api) -> None:
    api.create("a", command=shell("echo one; sleep 0.15; echo two"))
    api.until_phase("a", "Running")
    answer = api.core.read_namespaced_pod_log("a", "default", follow=True, _preload_content=False)
    assert b"".join(answer.stream()) == b"one\ntwo\n"


def test_logs_of_pods_that_wait(api: Api) -> None:
    api.create("a", cpu="100")
    # Not placed: there is no kubelet to ask, and nothing is said.
    assert api.log("a") == ""
    api.create("b", container={"image": "invalid-image"})
    until(lambda: "Failed" in api.reasons("b"))
    with pytest.raises(client.ApiException) as caught:
        api.log("b")
    assert 'container \\"base\\" in pod \\"b\\" is waiting to start' in caught.value.body


def test_sigterm_then_sigkill(api: Api) -> None:
    api.create("polite", command=shell("trap 'echo bye; exit 0' TERM; echo ready; sleep 60 & wait"))
    api.create("stubborn", command=shell("trap '' TERM; echo $$$$; while :; do sleep 0.02; done"))
    until(lambda: api.phase("polite") == "Running" and api.log("polite"))
    pid = int(until(lambda: api.phase("stubborn") == "Running" and api.log("stubborn")))
    answer = api.core.read_namespaced_pod_log("polite", "default", follow=True, _preload_content=False)
    api.core.delete_namespaced_pod("polite", "default")
    assert b"".join(answer.stream()) == b"ready\nbye\n"
    api.until_phase("polite", None)
    api.core.delete_namespaced_pod("stubborn", "default", grace_period_seconds=1)
    assert alive(pid)
    api.until_phase("stubborn", None)
    until(lambda: not alive(pid))


def test_nothing_of_a_pod_survives_its_deletion(api: Api) -> None:
    # The shell's child ignores SIGTERM and would live on.
    script = "sh -c 'trap \"\" TERM; echo $$$$; while :; do sleep 0.05; done' & wait"
    api.create("a", command=shell(script))
    pid = int(until(lambda: api.phase("a") == "Running" and api.log("a")))
    api.core.delete_namespaced_pod("a", "default", grace_period_seconds=0)
    until(lambda: not alive(pid))


def test_commands_that_cannot_start(api: Api) -> None:
    api.create("a", command=["/no/such/program"])
    pod = api.until_phase("a", "Failed")
    assert (terminated(pod).exit_code, terminated(pod).reason) == (128, "StartError")
    assert "install it here, or annotate" in terminated(pod).message
    api.create("b")
    pod = api.until_phase("b", "Succeeded")
    assert "its entrypoint is unknown" in api.log("b")
    assert "EntrypointUnknown" in api.reasons("b")
    missing = {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "no", "key": "x"}}}]}
    api.create("c", command=shell("true"), container=missing)
    until(lambda: api.pod("c").status.container_statuses)
    assert api.pod("c").status.container_statuses[0].state.waiting.reason == "CreateContainerConfigError"
    api.core.create_namespaced_config_map("default", {"metadata": {"name": "no"}, "data": {"x": "1"}})
    api.until_phase("c", "Succeeded")


def test_arguments_alone_run_if_they_name_a_program(api: Api) -> None:
    api.create("a", container={"args": ["echo", "hello"]})
    api.until_phase("a", "Succeeded")
    assert api.log("a") == "hello\n"


def test_images_that_cannot_be_pulled(api: Api) -> None:
    api.create("a", run_seconds=0, container={"image": "registry.example.com/team/invalid-thing:1"})
    api.create("b", run_seconds=0, annotations={"airflow-elastic.io/image-pull": "fail"})

    def waiting(name: str) -> str | None:
        found = api.pod(name).status.container_statuses
        return found[0].state.waiting.reason if found else None

    for reason in ("ErrImagePull", "ImagePullBackOff"):
        for name in ("a", "b"):
            until(lambda name=name, reason=reason: waiting(name) == reason)
    for name in ("a", "b"):
        assert api.phase(name) == "Pending"
        api.core.delete_namespaced_pod(name, "default")
        api.until_phase(name, None)


def test_init_containers_run_one_after_another(api: Api) -> None:
    volume = [{"name": "work", "mountPath": "/scratch"}]
    init = [
        {"name": "one", "image": "i", "command": shell("echo 1 >> /scratch/order"), "volumeMounts": volume},
        {"name": "two", "image": "i", "command": shell("echo 2 >> /scratch/order"), "volumeMounts": volume},
    ]
    api.create(
        "a",
        command=shell("cat /scratch/order"),
        container={"volumeMounts": volume},
        initContainers=init,
        volumes=[{"name": "work", "emptyDir": {}}],
    )
    pod = api.until_phase("a", "Succeeded")
    assert api.log("a", container="base") == "1\n2\n"
    assert [s.state.terminated.exit_code for s in pod.status.init_container_statuses] == [0, 0]
    init[0]["command"] = shell("exit 7")
    api.create("b", command=shell("echo never"), initContainers=[{**init[0], "volumeMounts": []}])
    pod = api.until_phase("b", "Failed")
    assert pod.status.container_statuses[0].state.waiting.reason == "PodInitializing"


def test_a_native_sidecar_ends_with_the_pod(api: Api) -> None:
    sidecar = {"name": "side", "image": "i", "command": ["sleep", "600"], "restartPolicy": "Always"}
    api.create("a", command=shell("echo done"), initContainers=[sidecar])
    pod = api.until_phase("a", "Succeeded")
    assert pod.status.init_container_statuses[0].state.terminated.exit_code == 143


def test_config_maps_and_secrets_as_files(api: Api) -> None:
    api.core.create_namespaced_config_map("default", {"metadata": {"name": "c"}, "data": {"app.ini": "x=1"}})
    api.core.create_namespaced_secret("default", {"metadata": {"name": "s"}, "stringData": {"token": "t0"}})
    api.create(
        "a",
        command=shell("cat /etc/app/app.ini /etc/secret/token; echo; ls /etc/app-other 2>/dev/null || echo untouched"),
        container={
            "volumeMounts": [
                {"name": "conf", "mountPath": "/etc/app"},
                {"name": "sec", "mountPath": "/etc/secret/"},
            ]
        },
        volumes=[{"name": "conf", "configMap": {"name": "c"}}, {"name": "sec", "secret": {"secretName": "s"}}],
    )
    api.until_phase("a", "Succeeded")
    assert api.log("a") == "x=1t0\nuntouched\n"


def test_restart_policies(api: Api) -> None:
    volume = {"volumeMounts": [{"name": "w", "mountPath": "/w"}]}
    script = "if [ -e /w/once ]; then exit 0; fi; touch /w/once; exit 1"
    volumes = [{"name": "w", "emptyDir": {}}]
    api.create("a", command=shell(script), container=volume, volumes=volumes, restartPolicy="OnFailure")
    pod = api.until_phase("a", "Succeeded")
    status = pod.status.container_statuses[0]
    assert status.restart_count == 1
    assert status.last_state.terminated.exit_code == 1
    api.create("b", command=shell("exit 0"), restartPolicy="Always")

    def reason() -> str | None:
        found = api.pod("b").status.container_statuses
        waiting = found[0].state.waiting if found else None
        return waiting.reason if waiting else None

    until(lambda: reason() == "CrashLoopBackOff")
    assert api.phase("b") == "Running"


def test_active_deadline(api: Api) -> None:
    api.create("a", command=["sleep", "60"], activeDeadlineSeconds=1)
    pod = api.until_phase("a", "Failed")
    assert pod.status.reason == "DeadlineExceeded"


def test_simulated_pods(api: Api) -> None:
    before = threading.active_count()
    api.create("a", run_seconds=0.1)
    api.create("b", run_seconds=0.1, annotations={"airflow-elastic.io/exit-code": "4"})
    api.create("c", run_seconds=600)
    start = time.monotonic()
    api.until_phase("a", "Succeeded")
    assert terminated(api.until_phase("b", "Failed")).exit_code == 4
    assert time.monotonic() - start > 0.05
    api.until_phase("c", "Running")
    assert threading.active_count() == before
    api.core.delete_namespaced_pod("c", "default")
    api.until_phase("c", None)


def test_pause_and_placeholder_pods_stay(api: Api) -> None:
    api.create("a", container={"image": "registry.k8s.io/pause:3.10"})
    api.create("b", labels={"airflow-elastic.io/placeholder": "r1"})
    for name in ("a", "b"):
        api.until_phase(name, "Running")
        api.core.delete_namespaced_pod(name, "default")
        api.until_phase(name, None)


def test_exec(api: Api) -> None:
    api.create("a", command=["sleep", "60"], container={"env": [{"name": "A", "value": "b"}]})
    api.until_phase("a", "Running")

    def run(*command: str, **options: Any) -> Any:
        defaults = {"stdin": False, "stdout": True, "stderr": True, "tty": False}
        return stream(
            api.core.connect_get_namespaced_pod_exec, "a", "default", command=list(command), **{**defaults, **options}
        )

    assert run("sh", "-c", "echo out $A; echo err >&2") in ("out b\nerr\n", "err\nout b\n")
    session = run("sh", "-c", "exit 5", _preload_content=False)
    session.run_forever(timeout=5)
    assert session.returncode == 5
    session = run("cat", stdin=True, _preload_content=False)
    session.write_stdin("echoed\n")
    assert session.readline_stdout(timeout=5) == "echoed"
    session.close()
    session = run("nonsense-program", _preload_content=False)
    session.run_forever(timeout=5)
    assert session.returncode == 127


def test_exec_into_nothing_is_refused_at_the_handshake(api: Api) -> None:
    api.create("a", run_seconds=60)
    api.until_phase("a", "Running")
    base = api.cluster.url.replace("http", "ws") + "/api/v1/namespaces/default/pods"
    for path, code in (
        ("a/exec?command=true&container=none", 400),
        ("a/exec", 400),
        ("gone/exec?command=true", 404),
        ("a/nonsense", 404),
    ):
        with pytest.raises(websocket.WebSocketBadStatusException) as caught:
            websocket.create_connection(f"{base}/{path}", subprotocols=["v4.channel.k8s.io"])
        assert caught.value.status_code == code


def test_pods_bound_by_name_are_admitted_by_the_kubelet() -> None:
    with cluster_of(NodePoolConfig("n", initial_nodes=1, allocatable={"cpu": "1"})) as cluster:
        api = Api(cluster)
        node = api.node_names()[0]
        api.create("fits", cpu="600m", nodeName=node, run_seconds=60)
        api.until_phase("fits", "Running")
        api.create("toobig", cpu="600m", nodeName=node, run_seconds=60)
        rejected = api.until_phase("toobig", "Failed")
        assert rejected.status.reason == "OutOfcpu"
        assert rejected.status.container_statuses is None
        api.create("elsewhere", nodeName=node, nodeSelector={"disk": "ssd"}, run_seconds=60)
        assert api.until_phase("elsewhere", "Failed").status.reason == "NodeAffinity"
        assert api.phase("fits") == "Running"
        api.close()


def test_stopping_the_cluster_ends_every_process() -> None:
    cluster = cluster_of(NodePoolConfig("n", initial_nodes=1))
    cluster.start()
    api = Api(cluster)
    api.create("a", command=shell("echo $$$$; sleep 600"))
    pid = int(until(lambda: api.phase("a") == "Running" and api.log("a")))
    plane = cluster._plane
    assert plane is not None
    root = plane.kubelet.root
    assert root.is_dir()
    cluster.stop()
    until(lambda: not alive(pid))
    assert not root.exists()
