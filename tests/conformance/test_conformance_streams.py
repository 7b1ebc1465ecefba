"""Logs and exec."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from kubernetes import client, config
from kubernetes.stream import stream

from conformance.clusters import Cluster, until
from conformance.pods import Namespace, pod


def test_the_log_of_a_finished_pod(ns: Namespace) -> None:
    ns.run("one", "echo out; echo err >&2; printf unfinished")
    ns.finished("one")
    assert ns.log("one") == "out\nerr\nunfinished"


def test_a_followed_log_ends_with_the_container(ns: Namespace) -> None:
    ns.run("one", "echo first; sleep 1; echo second; sleep 1; echo third")
    ns.until_phase("one", "Running")
    arrived = [(time.monotonic(), line) for line in ns.rest.lines(f"{ns.pods}/one/log", follow="true")]
    assert [line for _, line in arrived] == ["first", "second", "third"]
    # Lines come while the container runs, not at its end.
    assert arrived[2][0] - arrived[1][0] > 0.5
    assert ns.finished("one")["status"]["phase"] == "Succeeded"


def test_a_followed_log_of_a_finished_pod_ends_at_once(ns: Namespace) -> None:
    ns.run("one", "echo done")
    ns.finished("one")
    assert list(ns.rest.lines(f"{ns.pods}/one/log", follow="true")) == ["done"]


def test_parts_of_a_log(ns: Namespace) -> None:
    ns.run("one", "for i in 1 2 3 4 5; do echo line $i; done")
    ns.finished("one")
    assert ns.log("one", tailLines=2) == "line 4\nline 5\n"
    assert ns.log("one", tailLines=0) == ""
    assert ns.log("one", limitBytes=9) == "line 1\nli"
    stamped = ns.log("one", timestamps="true").splitlines()
    assert [line.split(" ", 1)[1] for line in stamped] == [f"line {n}" for n in range(1, 6)]
    assert all(line[10] == "T" and line.split(" ")[0].endswith("Z") for line in stamped)
    assert len(ns.log("one", sinceSeconds=3600).splitlines()) == 5
    time.sleep(2)
    assert ns.log("one", sinceSeconds=1) == ""


def test_since_a_time(ns: Namespace) -> None:
    ns.run("one", "echo early; sleep 2; echo late")
    ns.finished("one")
    late = ns.log("one", timestamps="true").splitlines()[1].split(" ")[0]
    whole_second = late[:19] + "Z"
    assert ns.log("one", sinceTime=whole_second) == "late\n"


def test_a_log_before_the_start(cluster: Cluster, ns: Namespace) -> None:
    ns.create(pod("nowhere", nodeSelector={"no": "where"}))
    answer = ns.rest.get(f"{ns.pods}/nowhere/log")
    # Not placed: there is no kubelet to ask, and nothing is said.
    assert (answer.code, answer.body) == (204, "")
    image = {"image": "localhost/invalid-image:1", "command": ["true"]}
    ns.create(pod("waiting", nodeName=cluster.process_node, container=image))
    until(lambda: ns.pod("waiting")["status"].get("containerStatuses"), 30, "a status")
    answer = ns.rest.get(f"{ns.pods}/waiting/log")
    assert (answer.code, answer.reason) == (400, "BadRequest")
    assert answer.message.startswith('container "base" in pod "waiting" is waiting to start: ')


def test_logs_of_several_containers(cluster: Cluster, ns: Namespace) -> None:
    body = pod("two", nodeName=cluster.process_node, container={"command": ["/bin/sh", "-c", "echo from base"]})
    body["spec"]["containers"].append(
        {"name": "other", "image": cluster.image, "command": ["/bin/sh", "-c", "echo from other"]}
    )
    ns.create(body)
    ns.finished("two")
    assert ns.log("two", container="other") == "from other\n"
    answer = ns.rest.get(f"{ns.pods}/two/log")
    assert (answer.code, answer.reason) == (400, "BadRequest")
    assert answer.message == ("a container name must be specified for pod two, choose one of: [base other]")
    answer = ns.rest.get(f"{ns.pods}/two/log", container="none")
    assert (answer.code, answer.message) == (400, "container none is not valid for pod two")
    assert ns.rest.get(f"{ns.pods}/none/log").code == 404


@pytest.fixture
def core(cluster: Cluster) -> client.CoreV1Api:
    configuration: Any = config.new_client_from_config(str(cluster.kubeconfig))
    return client.CoreV1Api(configuration)


def test_exec(ns: Namespace, core: client.CoreV1Api) -> None:
    ns.run("one", "sleep 30", terminationGracePeriodSeconds=0)
    ns.until_phase("one", "Running")
    session = stream(
        core.connect_get_namespaced_pod_exec, "one", ns.name, container="base", stdout=True, stderr=True, stdin=False,
        tty=False, command=["/bin/sh", "-c", "echo out; echo err >&2; exit 3"], _preload_content=False,
    )  # fmt: skip
    session.run_forever(timeout=15)
    assert session.read_stdout() == "out\n"
    assert session.read_stderr() == "err\n"
    assert session.returncode == 3


def test_exec_with_input(ns: Namespace, core: client.CoreV1Api) -> None:
    ns.run("one", "sleep 30", terminationGracePeriodSeconds=0)
    ns.until_phase("one", "Running")
    session = stream(
        core.connect_get_namespaced_pod_exec, "one", ns.name, container="base", stdout=True, stderr=True, stdin=True,
        tty=False, command=["/bin/sh"], _preload_content=False,
    )  # fmt: skip
    session.write_stdin("echo $((6 * 7))\n")
    assert session.readline_stdout(timeout=10) == "42"
    session.write_stdin("exit 0\n")
    session.run_forever(timeout=10)
    assert session.returncode == 0
    session.close()


def test_exec_where_nothing_runs(ns: Namespace, core: client.CoreV1Api) -> None:
    ns.run("one", "true")
    ns.finished("one")
    # The client stumbles over this answer itself, so it is read from what the failure came from.
    with pytest.raises(Exception, match=r".*") as failure:
        stream(
            core.connect_get_namespaced_pod_exec, "one", ns.name, container="base", stdout=True, stderr=True,
            stdin=False, tty=False, command=["true"],
        )  # fmt: skip
    reasons = []
    error: BaseException | None = failure.value
    while error is not None:
        reasons.append(str(error))
        error = error.__context__
    assert 'container not found ("base")' in "\n".join(reasons)


def test_the_programs_of_one_container_see_the_same_files(ns: Namespace, core: client.CoreV1Api) -> None:
    volume = {"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}
    ns.run(
        "one", "echo '{\"a\": 1}' > /shared/result.json; sleep 30", container=volume,
        volumes=[{"name": "shared", "emptyDir": {}}], terminationGracePeriodSeconds=0,
    )  # fmt: skip
    ns.until_phase("one", "Running")

    def content() -> str:
        return str(
            stream(
                core.connect_get_namespaced_pod_exec, "one", ns.name, container="base", stdout=True, stderr=False,
                stdin=False, tty=False, command=["cat", "/shared/result.json"], _preload_content=True,
            )
        )  # fmt: skip

    # The client turns what looks like JSON into Python's own notation.
    assert until(lambda: content(), 10) in ("{'a': 1}", json.dumps({"a": 1}) + "\n")
