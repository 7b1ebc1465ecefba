"""How a container starts: which runner stands for it, and what the pod's events say."""

from __future__ import annotations

import math
import shutil
from functools import partial
from typing import TYPE_CHECKING

from airflow_elastic.embedded.kubelet import pod_annotations
from airflow_elastic.embedded.kubelet.container import SIDECAR_NAME, Container
from airflow_elastic.embedded.kubelet.environment import MissingReference, command_line, environment
from airflow_elastic.embedded.kubelet.runners import ProcessRunner, TimedRunner

if TYPE_CHECKING:
    from airflow_elastic.embedded.kubelet.worker import PodWorker

__all__ = ["broken_image", "emit", "start", "termination_message"]

PLACEHOLDER_LABEL = "airflow-elastic.io/placeholder"
_MAX_MESSAGE_BYTES = 4096
_FALLBACK_LINES, _FALLBACK_BYTES = 80, 2048
_CANNOT_START = 128
# A kubelet looks again with its next sync of the pod.
_LOOK_AGAIN_SECONDS = 2.0


def emit(worker: PodWorker, reason: str, message: str, *, warning: bool = False) -> None:
    """Record an event of the kubelet about a pod."""
    entry = worker.kubelet.pods.get(worker.key)
    if entry is not None:
        recorder = worker.kubelet.plane.recorder
        recorder.emit(entry.obj, reason, message, "kubelet", warning=warning, host=worker.node, repeats=warning)


def broken_image(worker: PodWorker) -> bool:
    """Tell whether an image cannot be pulled; then the containers wait with ErrImagePull and ImagePullBackOff."""
    fail_all = pod_annotations.text_of(worker.pod, pod_annotations.IMAGE_PULL) == "fail"
    broken = [c for c in worker.all_containers if fail_all or c.spec["image"].rpartition("/")[2].startswith("invalid")]
    for container in broken:
        image = container.spec["image"]
        container.waiting_reason = "ErrImagePull"
        container.waiting_message = f'failed to pull and unpack image "{image}": not found'
        emit(worker, "Failed", f'Failed to pull image "{image}": not found', warning=True)
        worker.later(1.0, partial(_back_off, worker, container))
    return bool(broken)


def _back_off(worker: PodWorker, container: Container) -> None:
    image = container.spec["image"]
    container.waiting_reason = "ImagePullBackOff"
    container.waiting_message = f'Back-off pulling image "{image}"'
    emit(worker, "BackOff", f'Back-off pulling image "{image}"', warning=True)
    worker.write_pending()


def start(worker: PodWorker, container: Container, *, init: bool) -> None:
    """Start a container; the worker hears of its end through the event loop, never before this returns."""
    log = container.begin()
    loop = worker.kubelet.loop
    ended = partial(worker.exited, container)
    pod, spec = worker.pod, container.spec
    run_seconds = pod_annotations.text_of(pod, pod_annotations.RUN_SECONDS)
    if container.name == SIDECAR_NAME:
        container.runner = TimedRunner(loop, math.inf, ended)
        return
    if run_seconds is not None:
        seconds = 0.0 if init else pod_annotations.number_of(pod, pod_annotations.RUN_SECONDS, 0.0)
        _leave_xcom(worker)
        log.write_line(f"simulated container: no process, {pod_annotations.RUN_SECONDS}={run_seconds}")
        container.runner = TimedRunner(
            loop,
            seconds,
            ended,
            exit_code=0 if init else int(pod_annotations.number_of(pod, pod_annotations.EXIT_CODE, 0)),
            term_seconds=pod_annotations.number_of(pod, pod_annotations.TERM_SECONDS, 0.0),
        )
        emit(worker, "Started", f"Started container {container.name}")
        return
    if not spec.get("command") and (_is_pause(spec["image"]) or PLACEHOLDER_LABEL in _labels(worker)):
        container.runner = TimedRunner(loop, math.inf, ended, term_code=0)
        emit(worker, "Started", f"Started container {container.name}")
        return
    return _start_process(worker, container)


def _start_process(worker: PodWorker, container: Container) -> None:
    spec, log = container.spec, container.log
    assert log is not None, "begin() has made the log"
    ended = partial(worker.exited, container)
    directory = worker.make_directory()
    try:
        values = environment(worker.kubelet.plane, worker.pod, spec, directory)
    except MissingReference as error:
        emit(worker, "Failed", f"Error: {error}", warning=True)
        container.wait_for("CreateContainerConfigError", str(error))
        worker.start_again(_LOOK_AGAIN_SECONDS, container)
        return
    argv = command_line(spec, values, directory)
    if not argv or (not spec.get("command") and shutil.which(argv[0], path=values["PATH"]) is None):
        log.write_line(
            f"nothing was run: the image {spec['image']} is not pulled by the embedded cluster, so its entrypoint is "
            f"unknown; give the container a command, or annotate the pod with {pod_annotations.RUN_SECONDS}"
        )
        emit(
            worker, "EntrypointUnknown", f"container {container.name} completed without running anything", warning=True
        )
        container.runner = TimedRunner(worker.kubelet.loop, 0.0, ended)
        return
    try:
        runner = ProcessRunner(argv, values, directory.home(spec), log, ended, worker.kubelet.guard.drop)
    except OSError as error:
        detail = (error.strerror or str(error)).lower()
        message = (
            f'exec: "{argv[0]}": {detail}; pods run as processes of this machine: install it here, or annotate the '
            f"pod with {pod_annotations.RUN_SECONDS}"
        )
        log.write_line(message)
        _failed_start(worker, container, "StartError", message)
        return
    worker.kubelet.guard.add(runner.pid, worker.kubelet.root)
    container.runner = runner
    for reason, message in (
        ("Pulled", f'Container image "{spec["image"]}" already present on machine'),
        ("Created", f"Created container: {container.name}"),
        ("Started", f"Started container {container.name}"),
    ):
        emit(worker, reason, message)


def _failed_start(worker: PodWorker, container: Container, reason: str, message: str) -> None:
    emit(worker, "Failed", f"Error: {message}", warning=True)
    # Through the loop, so that the caller sees a container that ends after it started, as with a process.
    container.runner = TimedRunner(
        worker.kubelet.loop,
        0.0,
        lambda code: worker.exited(container, code, reason=reason, message=message),
        exit_code=_CANNOT_START,
    )


def termination_message(worker: PodWorker, container: Container, code: int) -> str:
    """Return what the container left in its termination log, or the end of its log where the policy says so."""
    if worker.directory is not None:
        try:
            with worker.directory.termination_file(container.spec).open("rb") as file:
                text = file.read(_MAX_MESSAGE_BYTES).decode("utf-8", "replace")
        except OSError:
            text = ""
        if text:
            return text
    if code != 0 and container.log is not None and container.spec.get("terminationMessagePolicy") != "File":
        return container.log.tail(_FALLBACK_LINES, _FALLBACK_BYTES)
    return ""


def _leave_xcom(worker: PodWorker) -> None:
    text = pod_annotations.text_of(worker.pod, pod_annotations.XCOM)
    if text is not None:
        (worker.make_directory().xcom / "return.json").write_text(text, encoding="utf-8")


def _is_pause(image: str) -> bool:
    return image.rpartition("/")[2].partition(":")[0] == "pause"


def _labels(worker: PodWorker) -> dict[str, str]:
    return worker.pod["metadata"].get("labels") or {}
