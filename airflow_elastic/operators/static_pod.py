"""What can be said about a task's pod when its DAG is parsed: operator arguments over pod spec over template."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

from airflow_elastic.model.resources import Resources
from airflow_elastic.operators.requests import field_of, pod_requests

__all__ = ["StaticPod"]

# As the provider adds it for do_xcom_push. A connection may say otherwise, which a parse must not ask.
_XCOM_SIDECAR = {"name": "airflow-xcom-sidecar", "resources": {"requests": {"cpu": "1m", "memory": "10Mi"}}}


@dataclass(frozen=True, slots=True)
class StaticPod:
    """The layers of a pod as far as they can be read without rendering: the first that states a field wins."""

    arguments: Callable[[str], Any]
    """Reads one argument of the operator by name; None where it is not given."""
    specs: tuple[Any, ...]
    """Pod specs below the arguments, the stronger first: full_pod_spec, then the template."""

    @classmethod
    def of(cls, arguments: Callable[[str], Any]) -> StaticPod:
        """Read the layers of a task; a template that cannot be read yet (or at all) is left out."""
        template = None
        if file := arguments("pod_template_file"):
            template = _template_file(file)
        elif isinstance(document := arguments("pod_template_dict"), dict):
            template = document
        specs = (field_of(pod, "spec") for pod in (arguments("full_pod_spec"), template))
        return cls(arguments, tuple(spec for spec in specs if spec is not None))

    def spec_field(self, name: str) -> Any:
        """Return a field of the pod's spec from the strongest layer that states it (as given: object or dict)."""
        return next((value for value in self._layers(name) if value), None)

    def requests(self, default: Resources) -> Resources:
        """Return what the pod will ask of a node; ``default`` for a base container that states nothing."""
        layers = [field_of(spec, "containers") or () for spec in self.specs]
        base = {"resources": self.arguments("container_resources")}
        containers: list[dict[str, Any]] = [
            {"resources": next((found for each in column if (found := field_of(each, "resources"))), None)}
            for column in zip_longest([base], *layers)
        ]
        if self.arguments("do_xcom_push"):
            containers.append(_XCOM_SIDECAR)
        return pod_requests(
            containers,
            self._init_containers(),
            overhead=self.spec_field("overhead"),
            pod_level=self.spec_field("resources"),
            default=default,
        )

    def _layers(self, name: str) -> Iterator[Any]:
        yield self.arguments(name)
        for spec in self.specs:
            yield field_of(spec, name)

    def _init_containers(self) -> list[Any]:
        # Weakest layer first, so that a stronger one replaces a container of the same name.
        named: dict[object, Any] = {}
        for layer in reversed([*self._layers("init_containers")]):
            for container in layer if isinstance(layer, list | tuple) else ():
                named[field_of(container, "name") or id(container)] = container
        return list(named.values())


def _template_file(path: object) -> Any:
    if not isinstance(path, str) or "{{" in path or "{%" in path:
        return None
    try:
        return _parsed(path, Path(path).stat().st_mtime_ns)
    except OSError:
        return None  # the operator itself will complain when it launches the pod


@lru_cache(maxsize=64)
def _parsed(path: str, _modified: int) -> Any:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return yaml.load(Path(path).read_text(), Loader=loader)
    except yaml.YAMLError:
        return None
