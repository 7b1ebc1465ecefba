"""Parts of a pod that have no effect in the embedded cluster: said in an event, never passed over in silence."""

from __future__ import annotations

from airflow_elastic.embedded.types import Object

__all__ = ["unsimulated_parts"]


def unsimulated_parts(pod: Object) -> list[str]:
    """Return one sentence for each part that has no effect here."""
    spec = pod["spec"]
    told = []
    if spec.get("topologySpreadConstraints"):
        told.append("spec.topologySpreadConstraints has no effect: the scheduler does not spread by it")
    claims = [volume["name"] for volume in spec.get("volumes") or () if volume.get("persistentVolumeClaim")]
    if claims:
        told.append(f"volumes {', '.join(claims)} are empty directories: there are no persistent volumes")
    containers = [*(spec.get("initContainers") or ()), *spec["containers"]]
    for part, what in (
        ("livenessProbe", "never restarts a container by it"),
        ("readinessProbe", "calls a running container ready"),
        ("startupProbe", "does not wait for it"),
        ("lifecycle", "runs no hooks"),
    ):
        named = [container["name"] for container in containers if container.get(part)]
        if named:
            told.append(f"{part} of {', '.join(named)} has no effect: the kubelet {what}")
    return told
