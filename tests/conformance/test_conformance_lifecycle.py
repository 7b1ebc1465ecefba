"""What containers do and how it shows: phases, codes, messages, signals, memory."""

from __future__ import annotations

import time

import pytest

from conformance.clusters import Cluster, until
from conformance.pods import Namespace, condition, pod, status_of
from conformance.rest import Object

_AFFINITY = (
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]"
)


def terminated(body: Object, container: str = "base") -> Object:
    """Return how a container ended."""
    found: Object = status_of(body, container)["state"]["terminated"]
    return found


def test_success(ns: Namespace) -> None:
    ns.run("one", "echo hello; sleep 0.5")
    running = ns.until_phase("one", "Running", "Succeeded")
    assert running["status"]["hostIP"]
    assert running["status"]["podIP"]
    assert running["status"]["startTime"]
    body = ns.finished("one")
    assert body["status"]["phase"] == "Succeeded"
    end = terminated(body)
    assert (end["exitCode"], end["reason"]) == (0, "Completed")
    assert end["startedAt"] <= end["finishedAt"]
    status = status_of(body)
    assert (status["ready"], status["restartCount"], status["started"]) == (False, 0, False)
    ready = condition(body, "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "PodCompleted")
    assert condition(body, "Initialized")["status"] == "True"
    assert condition(body, "ContainersReady")["status"] == "False"


def test_a_running_pod(ns: Namespace) -> None:
    ns.run("one", "sleep 30", terminationGracePeriodSeconds=0)
    body = ns.until_phase("one", "Running")
    status = status_of(body)
    assert status["state"]["running"]["startedAt"]
    assert (status["ready"], status["started"]) == (True, True)
    for kind in ("Ready", "ContainersReady", "Initialized", "PodScheduled"):
        assert condition(body, kind)["status"] == "True", kind
    assert {"Created", "Started"} <= set(ns.reasons("one"))


@pytest.mark.parametrize("code", [1, 42, 255])
def test_failure_keeps_the_exit_code(ns: Namespace, code: int) -> None:
    ns.run("one", f"exit {code}")
    body = ns.finished("one")
    assert body["status"]["phase"] == "Failed"
    assert "reason" not in body["status"]
    end = terminated(body)
    assert (end["exitCode"], end["reason"]) == (code, "Error")
    assert not condition(body, "DisruptionTarget")


def test_killed_by_a_signal_of_its_own(ns: Namespace) -> None:
    # "$$" is one "$" to Kubernetes, as "$(NAME)" is a reference.
    ns.run("one", "sh -c 'kill -9 $$$$'; exit $?")
    assert terminated(ns.finished("one"))["exitCode"] == 137


def test_a_program_that_does_not_exist(cluster: Cluster, ns: Namespace) -> None:
    ns.create(pod("one", nodeName=cluster.process_node, container={"command": ["/no/such/program"]}))
    body = ns.finished("one")
    assert body["status"]["phase"] == "Failed"
    end = terminated(body)
    assert (end["exitCode"], end["reason"]) == (128, "StartError")
    assert "no such file or directory" in end["message"]


def test_termination_messages(ns: Namespace) -> None:
    ns.run("file", "echo -n why > /dev/termination-log; exit 3")
    assert terminated(ns.finished("file"))["message"] == "why"
    fallback = {"terminationMessagePolicy": "FallbackToLogsOnError"}
    ns.run("log", "echo first; echo last; exit 3", container=fallback)
    assert terminated(ns.finished("log"))["message"] == "first\nlast\n"
    ns.run("fine", "echo text", container=fallback)
    assert "message" not in terminated(ns.finished("fine"))
    ns.run("none", "echo text; exit 3")
    assert "message" not in terminated(ns.finished("none"))


def test_sigterm_then_the_grace_period(ns: Namespace) -> None:
    ns.run("polite", "trap 'echo told; exit 7' TERM; echo up; while :; do sleep 0.1; done")
    ns.until_phase("polite", "Running")
    until(lambda: "up" in ns.log("polite"), 10, "the trap is set")
    start = ns.rest.get(ns.pods).version
    with ns.rest.watch(ns.pods, resourceVersion=start) as watch:
        answer = ns.rest.delete(f"{ns.pods}/polite")
        assert answer.code == 200
        # A graceful deletion answers with the object as it will be until the end.
        assert answer.body["kind"] == "Pod"
        assert answer.body["metadata"]["deletionGracePeriodSeconds"] == 30
        ended = watch.until(lambda _, obj: "terminated" in status_of(obj).get("state", {}))
        assert terminated(ended)["exitCode"] == 7
        gone = watch.until(lambda kind, _: kind == "DELETED")
    assert gone["status"]["phase"] == "Failed"
    assert "Killing" in ns.reasons("polite")


def test_deletion_of_a_pod_that_ends_well_shows_success(ns: Namespace) -> None:
    ns.run("polite", "trap 'exit 0' TERM; echo up; while :; do sleep 0.1; done")
    until(lambda: ns.phase("polite") == "Running" and "up" in ns.log("polite"), 20, "it runs")
    with ns.rest.watch(ns.pods, resourceVersion=ns.rest.get(ns.pods).version) as watch:
        ns.rest.delete(f"{ns.pods}/polite")
        gone = watch.until(lambda kind, _: kind == "DELETED")
    assert gone["status"]["phase"] == "Succeeded"
    assert terminated(gone)["exitCode"] == 0


def test_sigkill_when_the_grace_period_is_over(ns: Namespace) -> None:
    ns.run("deaf", "trap '' TERM; echo up; while :; do sleep 0.1; done", terminationGracePeriodSeconds=2)
    until(lambda: ns.phase("deaf") == "Running" and "up" in ns.log("deaf"), 20, "it runs")
    with ns.rest.watch(ns.pods, resourceVersion=ns.rest.get(ns.pods).version) as watch:
        began = time.monotonic()
        ns.rest.delete(f"{ns.pods}/deaf")
        gone = watch.until(lambda kind, _: kind == "DELETED")
    assert 1.8 < time.monotonic() - began < 8
    assert terminated(gone)["exitCode"] == 137
    assert gone["status"]["phase"] == "Failed"


def test_the_grace_of_the_request_goes_before_that_of_the_pod(ns: Namespace) -> None:
    ns.run("deaf", "trap '' TERM; echo up; while :; do sleep 0.1; done", terminationGracePeriodSeconds=100)
    until(lambda: ns.phase("deaf") == "Running" and "up" in ns.log("deaf"), 20, "it runs")
    body = ns.rest.delete(f"{ns.pods}/deaf", gracePeriodSeconds=50).body
    assert body["metadata"]["deletionGracePeriodSeconds"] == 50
    # A second deletion may shorten what is written down, not lengthen it. The kubelet (1.36, containerd 1.6) goes by
    # the first one all the same, so nothing here waits for the end.
    for seconds, expected in ((20, 20), (40, 20)):
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": seconds}
        body = ns.rest.delete(f"{ns.pods}/deaf", options).body
        assert body["metadata"]["deletionGracePeriodSeconds"] == expected
    ns.rest.delete(f"{ns.pods}/deaf", gracePeriodSeconds=0)
    assert ns.get("deaf").code == 404


def test_deletion_without_grace_removes_the_object_at_once(ns: Namespace) -> None:
    ns.run("deaf", "trap '' TERM; echo up; while :; do sleep 0.1; done")
    ns.until_phase("deaf", "Running")
    ns.rest.delete(f"{ns.pods}/deaf", gracePeriodSeconds=0)
    assert ns.get("deaf").code == 404


def test_a_pod_that_was_never_placed_goes_at_once(ns: Namespace) -> None:
    ns.create(pod("waiting", schedulerName="nobody"))
    answer = ns.rest.delete(f"{ns.pods}/waiting")
    assert answer.code == 200
    assert ns.get("waiting").code == 404


def test_a_finalizer_keeps_the_record_of_a_pod(ns: Namespace) -> None:
    ns.run("kept", "trap 'exit 5' TERM; echo up; while :; do sleep 0.1; done", finalizers=["example.com/record"])
    until(lambda: ns.phase("kept") == "Running" and "up" in ns.log("kept"), 20, "it runs")
    ns.rest.delete(f"{ns.pods}/kept")
    body = ns.finished("kept")
    assert body["status"]["phase"] == "Failed"
    assert terminated(body)["exitCode"] == 5
    assert body["metadata"]["deletionTimestamp"]
    ns.rest.patch(f"{ns.pods}/kept", {"metadata": {"finalizers": None}})
    ns.until_gone("kept")


def test_a_deadline(ns: Namespace) -> None:
    ns.run("late", "echo up; sleep 60", activeDeadlineSeconds=2, terminationGracePeriodSeconds=1)
    body = ns.finished("late")
    assert (body["status"]["phase"], body["status"]["reason"]) == ("Failed", "DeadlineExceeded")
    assert body["status"]["message"] == "Pod was active on the node longer than the specified deadline"


def test_memory_over_the_limit_is_the_pods_own_fault(ns: Namespace, cluster: Cluster) -> None:
    if cluster.name == "embedded":
        pytest.skip("the embedded cluster limits nobody's memory, on purpose: its pods are processes of the user")
    limits = {"resources": {"limits": {"memory": "32Mi"}, "requests": {"memory": "32Mi"}}}
    # tail keeps what it reads: there is no end of line in it.
    ns.run("greedy", "tail /dev/zero", container=limits)
    body = ns.finished("greedy")
    end = terminated(body)
    assert (end["reason"], end["exitCode"]) == ("OOMKilled", 137)
    assert not condition(body, "DisruptionTarget")
    assert body["status"]["phase"] == "Failed"


def test_restarts(ns: Namespace) -> None:
    ns.run("always", "exit 1", restartPolicy="Always", terminationGracePeriodSeconds=0)
    body = until(lambda: status_of(each := ns.pod("always")).get("restartCount", 0) >= 1 and each, 30, "a restart")
    assert body["status"]["phase"] == "Running"
    waiting = until(
        lambda: status_of(ns.pod("always")).get("state", {}).get("waiting"), 30, "the wait before the next start"
    )
    assert waiting["reason"] == "CrashLoopBackOff"
    assert status_of(ns.pod("always"))["lastState"]["terminated"]["exitCode"] == 1
    assert "BackOff" in ns.reasons("always")


def test_restart_on_failure_only(ns: Namespace) -> None:
    ns.run("fine", "exit 0", restartPolicy="OnFailure")
    body = ns.finished("fine")
    assert body["status"]["phase"] == "Succeeded"
    assert status_of(body)["restartCount"] == 0


def test_init_containers_go_first_and_one_after_the_other(cluster: Cluster, ns: Namespace) -> None:
    image = {"image": cluster.image}
    volume = {"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}
    init = [
        {"name": name, **image, **volume, "command": ["/bin/sh", "-c", f"echo {name} >> /shared/order"]}
        for name in ("first", "second")
    ]
    ns.run(
        "one", "cat /shared/order", initContainers=init, container=volume,
        volumes=[{"name": "shared", "emptyDir": {}}],
    )  # fmt: skip
    body = ns.finished("one")
    assert body["status"]["phase"] == "Succeeded"
    assert ns.log("one", container="base") == "first\nsecond\n"
    assert terminated(body, "first")["reason"] == "Completed"


def test_a_failing_init_container_ends_the_pod(cluster: Cluster, ns: Namespace) -> None:
    init = [{"name": "init", "image": cluster.image, "command": ["/bin/sh", "-c", "exit 4"]}]
    ns.run("one", "echo never", initContainers=init)
    body = ns.finished("one")
    assert body["status"]["phase"] == "Failed"
    assert terminated(body, "init")["exitCode"] == 4
    assert status_of(body)["state"]["waiting"]["reason"] == "PodInitializing"
    assert condition(body, "Initialized")["status"] == "False"


def test_two_containers_and_the_worse_code(cluster: Cluster, ns: Namespace) -> None:
    body = pod("two", nodeName=cluster.process_node, container={"command": ["/bin/sh", "-c", "exit 0"]})
    body["spec"]["containers"].append(
        {"name": "other", "image": cluster.image, "command": ["/bin/sh", "-c", "sleep 0.5; exit 6"]}
    )
    ns.create(body)
    ended = ns.finished("two")
    assert ended["status"]["phase"] == "Failed"
    assert (terminated(ended)["exitCode"], terminated(ended, "other")["exitCode"]) == (0, 6)


def test_a_sidecar_ends_with_the_pod(cluster: Cluster, ns: Namespace) -> None:
    script = "trap 'exit 0' TERM; while :; do sleep 0.1; done"
    side = {
        "name": "side", "image": cluster.image, "restartPolicy": "Always", "command": ["/bin/sh", "-c", script],
    }  # fmt: skip
    ns.run("one", "sleep 0.5", initContainers=[side])
    body = ns.finished("one")
    assert body["status"]["phase"] == "Succeeded"
    assert terminated(body, "side")["exitCode"] == 0


def test_an_image_that_cannot_be_pulled(cluster: Cluster, ns: Namespace) -> None:
    image = {"image": "localhost/invalid-image:1", "command": ["true"]}
    ns.create(pod("one", nodeName=cluster.process_node, container=image))

    def waiting() -> str:
        return str(status_of(ns.pod("one")).get("state", {}).get("waiting", {}).get("reason", ""))

    until(lambda: waiting() in ("ErrImagePull", "ImagePullBackOff"), 30, "the failed pull")
    until(lambda: waiting() == "ImagePullBackOff", 60, "the back-off")
    assert ns.phase("one") == "Pending"
    assert {"Failed", "BackOff"} <= set(ns.reasons("one"))


def test_environment(cluster: Cluster, ns: Namespace) -> None:
    ns.rest.made(f"{ns.path}/configmaps", {"metadata": {"name": "settings"}, "data": {"colour": "blue"}})
    ns.rest.made(f"{ns.path}/secrets", {"metadata": {"name": "keys"}, "stringData": {"token": "s3cret"}})
    env = [
        {"name": "PLAIN", "value": "x"},
        {"name": "COMBINED", "value": "$(PLAIN)-$(MISSING)-$$(PLAIN)"},
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "LABEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "COLOUR", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "colour"}}},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "token"}}},
        {"name": "OPTIONAL", "valueFrom": {"secretKeyRef": {"name": "none", "key": "token", "optional": True}}},
    ]
    container = {
        "env": env, "envFrom": [{"prefix": "S_", "configMapRef": {"name": "settings"}}],
        "args": ["$(PLAIN)"], "command": ["/bin/sh", "-c", 'echo "$PLAIN $COMBINED $POD $LABEL $NODE $COLOUR $TOKEN '
        '${OPTIONAL-unset} $S_colour $0"'],
    }  # fmt: skip
    ns.create(pod("one", nodeName=cluster.process_node, labels={"app": "web"}, container=container))
    assert ns.finished("one")["status"]["phase"] == "Succeeded"
    expected = f"x x-$(MISSING)-$(PLAIN) one web {cluster.process_node} blue s3cret unset blue x\n"
    assert ns.log("one") == expected


def test_a_missing_reference_waits(cluster: Cluster, ns: Namespace) -> None:
    env = [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "later", "key": "a"}}}]
    ns.run("one", 'echo "$A"', container={"env": env})
    waiting = until(
        lambda: (
            (status_of(ns.pod("one")).get("state", {}).get("waiting") or {}).get("reason")
            == "CreateContainerConfigError"
        ),
        30,
        "the complaint",
    )
    assert waiting
    ns.rest.made(f"{ns.path}/configmaps", {"metadata": {"name": "later"}, "data": {"a": "there"}})
    assert ns.finished("one", 60)["status"]["phase"] == "Succeeded"
    assert ns.log("one") == "there\n"


def test_files_of_configmaps_and_secrets(cluster: Cluster, ns: Namespace) -> None:
    ns.rest.made(f"{ns.path}/configmaps", {"metadata": {"name": "settings"}, "data": {"a.txt": "text"}})
    mount = {"volumeMounts": [{"name": "settings", "mountPath": "/etc/settings"}]}
    volumes = [{"name": "settings", "configMap": {"name": "settings"}}]
    ns.run("one", "cat /etc/settings/a.txt", container=mount, volumes=volumes)
    assert ns.finished("one")["status"]["phase"] == "Succeeded"
    assert ns.log("one") == "text"


def test_quality_of_service(ns: Namespace) -> None:
    both = {"cpu": "100m", "memory": "50Mi"}
    for name, resources, expected in (
        ("best", {}, "BestEffort"),
        ("burst", {"requests": both}, "Burstable"),
        ("sure", {"requests": both, "limits": both}, "Guaranteed"),
        ("limited", {"limits": both}, "Guaranteed"),
    ):
        made = ns.create(pod(name, schedulerName="nobody", container={"resources": resources}))
        assert made["status"]["qosClass"] == expected, name


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"containers": []}, "spec.containers"),
        ({"restartPolicy": "Sometimes"}, "spec.restartPolicy"),
        ({"containers": [{"name": "Bad_Name", "image": "x"}]}, "spec.containers[0].name"),
        ({"containers": [{"name": "a", "image": "x"}, {"name": "a", "image": "x"}]}, "spec.containers[1].name"),
        ({"containers": [{"name": "a", "image": "x", "resources": {
            "requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}]}, "spec.containers[0].resources.requests"),
        ({"containers": [{"name": "a", "image": "x", "volumeMounts": [
            {"name": "none", "mountPath": "/x"}]}]}, "spec.containers[0].volumeMounts[0].name"),
        ({"terminationGracePeriodSeconds": -1}, "spec.terminationGracePeriodSeconds"),
        ({"activeDeadlineSeconds": 0}, "spec.activeDeadlineSeconds"),
        ({"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}, "spec.tolerations[0].operator"),
        ({"tolerations": [{"key": "a", "effect": "Sometimes"}]}, "spec.tolerations[0].effect"),
        ({"nodeSelector": {"a": "not a value!"}}, "spec.nodeSelector"),
        ({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "a", "operator": "Sometimes"}]}]}}}}, f"{_AFFINITY}.operator"),
        ({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "a", "operator": "In"}]}]}}}}, f"{_AFFINITY}.values"),
        ({"schedulingGates": [{"name": "example.com/a"}, {"name": "example.com/a"}]}, "spec.schedulingGates[1]"),
    ],
)  # fmt: skip
def test_wrong_pods_are_refused_with_the_field(ns: Namespace, change: Object, field: str) -> None:
    body = pod("wrong")
    body["spec"].update(change)
    answer = ns.rest.post(ns.pods, body)
    if change.get("terminationGracePeriodSeconds") == -1 and answer.code == 201:
        # The API server turns a negative grace into 1 and says so in its documentation.
        assert answer.body["spec"]["terminationGracePeriodSeconds"] == 1
        return
    assert (answer.code, answer.reason) == (422, "Invalid"), answer
    assert field in [cause["field"] for cause in answer.body["details"]["causes"]], answer.body


def test_wrong_quantities_are_refused(ns: Namespace) -> None:
    for quantity in ("1 Gi", "-1", "lots"):
        container = {"resources": {"requests": {"memory": quantity}}}
        assert ns.rest.post(ns.pods, pod("wrong", container=container)).code in (400, 422), quantity
