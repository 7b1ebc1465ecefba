"""Tables as kubectl prints them (server-side printing), and metadata-only objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from airflow_elastic.embedded.registry.resources import Resource
from airflow_elastic.embedded.store.entry import Entry
from airflow_elastic.embedded.timestamps import age
from airflow_elastic.embedded.types import Object

__all__ = ["partial", "table"]

Cells = Callable[[Object], list[Any]]


def partial(obj: Object) -> Object:
    """Return an object's metadata only."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


def table(resource: Resource, entries: list[Entry], version: str, include: str) -> Object:
    """Return a metav1.Table; ``include`` is None, Metadata (the default) or Object."""
    columns, cells = _TABLES.get(resource.store_key, _DEFAULT)
    rows = []
    for entry in entries:
        row: Object = {"cells": cells(entry.obj)}
        if include != "None":
            row["object"] = entry.obj if include == "Object" else partial(entry.obj)
        rows.append(row)
    definitions = [
        {
            "name": name.rstrip("*"),
            "type": type_,
            "format": "name" if name == "Name" else "",
            "description": "",
            "priority": int(name.endswith("*")),
        }
        for name, type_ in columns
    ]  # fmt: skip
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": version},
        "columnDefinitions": definitions,
        "rows": rows,
    }


def _columns(*names: str) -> list[tuple[str, str]]:
    """Name columns; a trailing ``*`` marks those of ``-o wide``."""
    numbers = ("Restarts", "Data", "Value", "Count")
    return [(name, "integer" if name in numbers else "string") for name in names]


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def _age(obj: Object) -> str:
    return age(obj["metadata"].get("creationTimestamp"))


def _pod_reason(pod: Object) -> str:
    status = pod["status"]
    if pod["metadata"].get("deletionTimestamp"):
        return "Terminating"
    if status.get("reason"):
        return str(status["reason"])
    for container in status.get("initContainerStatuses") or ():
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") and waiting["reason"] != "PodInitializing":
            return f"Init:{waiting['reason']}"
    for container in reversed(status.get("containerStatuses") or []):
        state = container.get("state") or {}
        for kind in ("waiting", "terminated"):
            if (state.get(kind) or {}).get("reason"):
                return str(state[kind]["reason"])
    if any(
        c["type"] == "PodScheduled" and c.get("reason") == "SchedulingGated" for c in status.get("conditions") or ()
    ):
        return "SchedulingGated"
    return str(status.get("phase", "Unknown"))


def _pod(pod: Object) -> list[Any]:
    statuses = pod["status"].get("containerStatuses") or []
    ready = sum(1 for status in statuses if status.get("ready"))
    restarts = sum(status.get("restartCount", 0) for status in statuses)
    spec, status = pod["spec"], pod["status"]
    places = [status.get("podIP"), spec.get("nodeName"), status.get("nominatedNodeName"), None]
    shown = [place or "<none>" for place in places]
    return [_name(pod), f"{ready}/{len(spec['containers'])}", _pod_reason(pod), restarts, _age(pod), *shown]


def _node(node: Object) -> list[Any]:
    status = node["status"]
    ready = next((c["status"] for c in status.get("conditions") or () if c["type"] == "Ready"), "Unknown")
    words = ["Ready" if ready == "True" else "NotReady"]
    if node["spec"].get("unschedulable"):
        words.append("SchedulingDisabled")
    info = status["nodeInfo"]
    address = next((a["address"] for a in status.get("addresses") or () if a["type"] == "InternalIP"), "<none>")
    return [
        _name(node), ",".join(words), "<none>", _age(node), info["kubeletVersion"], address, "<none>",
        info["osImage"], info["kernelVersion"], info["containerRuntimeVersion"],
    ]  # fmt: skip


def _event(event: Object) -> list[Any]:
    involved = event["involvedObject"]
    about = f"{str(involved.get('kind', '')).lower()}/{involved.get('name', '')}"
    last = event.get("lastTimestamp") or event.get("eventTime")
    source = (event.get("source") or {}).get("component", "")
    return [
        age(last), event.get("type", ""), event.get("reason", ""), about, involved.get("fieldPath", ""), source,
        event.get("message", ""), age(event.get("firstTimestamp") or last), event.get("count", 1), _name(event),
    ]  # fmt: skip


def _node_pool(pool: Object) -> list[Any]:
    spec, status = pool["spec"], pool["status"]
    limits = f"{spec['minNodes']}-{spec['maxNodes']}"
    counts = [status["replicas"], status["readyReplicas"], status["bootingReplicas"]]
    return [_name(pool), spec["replicas"], *counts, limits, spec["capacityType"], _age(pool)]


def _budget(budget: Object) -> list[Any]:
    spec, status = budget["spec"], budget["status"]
    shown = [str(spec.get(key)) if spec.get(key) is not None else "N/A" for key in ("minAvailable", "maxUnavailable")]
    return [_name(budget), *shown, status["disruptionsAllowed"], _age(budget)]


def _config_map(obj: Object) -> list[Any]:
    return [_name(obj), len(obj.get("data") or {}) + len(obj.get("binaryData") or {}), _age(obj)]


def _priority_class(obj: Object) -> list[Any]:
    return [_name(obj), obj["value"], str(obj["globalDefault"]).lower(), _age(obj), obj["preemptionPolicy"]]


_DEFAULT: tuple[list[tuple[str, str]], Cells] = (_columns("Name", "Age"), lambda obj: [_name(obj), _age(obj)])
_TABLES: dict[str, tuple[list[tuple[str, str]], Cells]] = {
    "pods": (
        _columns("Name", "Ready", "Status", "Restarts", "Age", "IP*", "Node*", "Nominated Node*", "Readiness Gates*"),
        _pod,
    ),
    "nodes": (
        _columns(
            "Name", "Status", "Roles", "Age", "Version", "Internal-IP*", "External-IP*", "OS-Image*",
            "Kernel-Version*", "Container-Runtime*",
        ),
        _node,
    ),
    "events": (
        _columns(
            "Last Seen", "Type", "Reason", "Object", "Subobject*", "Source*", "Message", "First Seen*", "Count*",
            "Name*",
        ),
        _event,
    ),
    "namespaces": (_columns("Name", "Status", "Age"), lambda obj: [_name(obj), obj["status"]["phase"], _age(obj)]),
    "configmaps": (_columns("Name", "Data", "Age"), _config_map),
    "secrets": (
        _columns("Name", "Type", "Data", "Age"),
        lambda obj: [_name(obj), obj["type"], len(obj.get("data") or {}), _age(obj)],
    ),
    "leases.coordination.k8s.io": (
        _columns("Name", "Holder", "Age"),
        lambda obj: [_name(obj), obj["spec"].get("holderIdentity") or "", _age(obj)],
    ),
    "priorityclasses.scheduling.k8s.io": (
        _columns("Name", "Value", "Global-Default", "Age", "PreemptionPolicy"),
        _priority_class,
    ),
    "poddisruptionbudgets.policy": (
        _columns("Name", "Min Available", "Max Unavailable", "Allowed Disruptions", "Age"),
        _budget,
    ),
    "nodepools.embedded.airflow-elastic.io": (
        _columns("Name", "Desired", "Nodes", "Ready", "Booting", "Limits", "Capacity", "Age"),
        _node_pool,
    ),
}  # fmt: skip
