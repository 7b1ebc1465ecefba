"""What a stack is made of: cluster, capacity, DAGs. The demo is one variant; benchmarks make others."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from airflow_elastic.errors import ConfigurationError

__all__ = ["Variant", "demo_variant", "examples_folder", "load_yaml"]

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run DAGs on an embedded cluster."""

    name: str
    cluster: Mapping[str, Any]
    """Configuration of the embedded cluster."""
    capacity: Mapping[str, Any]
    """The capacity file's content; also what the reporter measures by."""
    dag_files: Mapping[str, str]
    """File name to text."""
    controller: str = "scheduler"
    """``off``: Airflow knows nothing of the cluster."""
    static_pools: Mapping[str, int] = field(default_factory=dict)
    """Airflow pools with fixed slots."""


def load_yaml(path: Path) -> dict[str, Any]:
    """Read one of the demo's own YAML files."""
    loaded: dict[str, Any] = yaml.safe_load(path.read_text())
    return loaded


def examples_folder() -> Path:
    """Return the folder of the example DAGs: inside an installed package, or beside it in a checkout.

    Raises:
        ConfigurationError: it is in neither place.
    """
    for folder in (_HERE.parent / "_dags_examples", _HERE.parent.parent / "dags_examples"):
        if folder.is_dir():
            return folder
    raise ConfigurationError(
        f"the example DAGs are missing from the installation at {_HERE.parent}; install airflow-elastic again"
    )


def demo_variant() -> Variant:
    """Return the demo: the packaged cluster, capacity file and example DAGs."""
    return Variant(
        name="elastic",
        cluster=load_yaml(_HERE / "cluster.yaml"),
        capacity=copy.deepcopy(load_yaml(_HERE / "capacity.yaml")),
        dag_files={path.name: path.read_text() for path in sorted(examples_folder().glob("*.py"))},
    )
