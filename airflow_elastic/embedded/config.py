"""What an embedded cluster is made of: node pools, their boot times and autoscalers."""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_elastic.errors import ConfigurationError
from airflow_elastic.model.resources import parse_quantity

__all__ = ["AutoscalerConfig", "ClusterConfig", "NodePoolConfig", "config_from_dict", "load_config"]

_DNS_LABEL = re.compile(r"^[a-z0-9]([-a-z0-9]{0,48}[a-z0-9])?$")
_TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
DEFAULT_ALLOCATABLE = {"cpu": "4", "memory": "16Gi", "ephemeral-storage": "50Gi", "pods": "30"}


@dataclass(frozen=True, slots=True)
class AutoscalerConfig:
    """A reactive autoscaler of one node pool: nodes for unschedulable pods, empty nodes away after a while."""

    scan_seconds: float = 10.0
    """Time between two looks at the pods that found no node."""
    empty_seconds: float = 600.0
    """How long a node has to be empty before it is removed."""

    def __post_init__(self) -> None:
        _positive("autoscaler", "scan_seconds", self.scan_seconds)
        _not_negative("autoscaler", "empty_seconds", self.empty_seconds)


@dataclass(frozen=True, slots=True)
class NodePoolConfig:
    """Interchangeable simulated machines: shape, limits and how long they take to come and go."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()
    allocatable: Mapping[str, str | int] = field(default_factory=lambda: dict(DEFAULT_ALLOCATABLE))
    """Kubernetes quantities by resource name; what is not named of cpu, memory, ephemeral-storage and pods is added."""
    capacity_type: str = "on-demand"
    min_nodes: int = 0
    max_nodes: int = 10
    initial_nodes: int | None = None
    """Nodes that are Ready from the start; ``min_nodes`` where not given."""
    boot_seconds_median: float = 45.0
    boot_seconds_p95: float | None = None
    """95th percentile of the boot time (lognormal); twice the median where not given."""
    remove_seconds: float = 2.0
    """From the decision to remove a machine to the end of its bill."""
    autoscaler: AutoscalerConfig | None = None
    stock_out: bool = False
    """The cloud has no machine of this kind now: requests wait with the condition InsufficientCapacity."""
    instance_type: str = ""
    zone: str = "embedded-a"

    def __post_init__(self) -> None:
        where = f"node pool {self.name!r}"
        if not _DNS_LABEL.match(self.name):
            raise ConfigurationError(
                f"{where}: the name must be lower-case letters, digits and '-', at most 50 characters; rename it"
            )
        object.__setattr__(self, "allocatable", {**DEFAULT_ALLOCATABLE, **self.allocatable})
        for resource, quantity in self.allocatable.items():
            try:
                parse_quantity(quantity, resource=resource)
            except ValueError as error:
                raise ConfigurationError(f"{where}: allocatable {resource}: {error}") from None
        if self.initial_nodes is None:
            object.__setattr__(self, "initial_nodes", self.min_nodes)
        if self.boot_seconds_p95 is None:
            object.__setattr__(self, "boot_seconds_p95", 2 * self.boot_seconds_median)
        if not 0 <= self.min_nodes <= self.max_nodes:
            raise ConfigurationError(
                f"{where}: min_nodes {self.min_nodes} and max_nodes {self.max_nodes}: write 0 ≤ min_nodes ≤ max_nodes"
            )
        if not self.min_nodes <= self.starting_nodes <= self.max_nodes:
            raise ConfigurationError(f"{where}: initial_nodes {self.initial_nodes} is not between min and max nodes")
        _not_negative(where, "boot_seconds_median", self.boot_seconds_median)
        _not_negative(where, "remove_seconds", self.remove_seconds)
        if self.slow_boot_seconds < self.boot_seconds_median:
            raise ConfigurationError(f"{where}: boot_seconds_p95 is less than boot_seconds_median; make it larger")
        for taint in self.taints:
            if "key" not in taint or taint.get("effect") not in _TAINT_EFFECTS:
                raise ConfigurationError(f"{where}: taint {dict(taint)} needs a key and an effect of {_TAINT_EFFECTS}")

    @property
    def starting_nodes(self) -> int:
        """Return the number of nodes at the start."""
        return self.min_nodes if self.initial_nodes is None else self.initial_nodes

    @property
    def slow_boot_seconds(self) -> float:
        """Return the 95th percentile of the boot time."""
        return 2 * self.boot_seconds_median if self.boot_seconds_p95 is None else self.boot_seconds_p95


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """A whole embedded cluster."""

    node_pools: Sequence[NodePoolConfig] = ()
    namespaces: Sequence[str] = ()
    """Namespaces to make besides default, kube-system, kube-public and kube-node-lease."""
    kubernetes_version: str = "v1.34.2"
    scoring: str = "least-allocated"
    """How nodes that fit are ranked: ``least-allocated`` spreads (as kube-scheduler does), ``most-allocated`` packs."""
    pod_start_seconds: float = 0.0
    """From binding to running."""
    lost_node_seconds: float = 40.0
    """From the death of a machine to the removal of its Node object; divided by the time speed."""
    history: int = 20_000
    """Changes kept for watches of each resource; older resource versions are answered with 410 Gone."""
    max_events: int = 20_000

    def __post_init__(self) -> None:
        names = [pool.name for pool in self.node_pools]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise ConfigurationError(f"node pools named twice: {', '.join(doubled)}; give each its own name")
        if self.scoring not in ("least-allocated", "most-allocated"):
            raise ConfigurationError(f"scoring {self.scoring!r}: write least-allocated or most-allocated")
        _not_negative("cluster", "pod_start_seconds", self.pod_start_seconds)
        _not_negative("cluster", "lost_node_seconds", self.lost_node_seconds)


def load_config(text: str) -> ClusterConfig:
    """Read a configuration in YAML or JSON.

    Raises:
        ConfigurationError: not YAML, an unknown key, or a value that makes no sense.
    """
    import yaml

    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigurationError(f"the cluster configuration is not YAML or JSON: {error}") from None
    return config_from_dict(data or {})


def config_from_dict(data: Any) -> ClusterConfig:
    """Build the configuration from plain data (keys as the dataclasses' fields).

    Raises:
        ConfigurationError: as `load_config`.
    """
    values = _checked(ClusterConfig, data, "cluster")
    pools = values.get("node_pools") or ()
    if not isinstance(pools, list | tuple):
        raise ConfigurationError("cluster: node_pools must be a list of node pools")
    built = []
    for index, item in enumerate(pools):
        where = f"node_pools[{index}]"
        pool = _checked(NodePoolConfig, item, where)
        if "name" not in pool:
            raise ConfigurationError(f"{where}: name is missing; give the node pool a name")
        if pool.get("autoscaler") is not None:
            pool["autoscaler"] = AutoscalerConfig(**_checked(AutoscalerConfig, pool["autoscaler"], where))
        built.append(_build(NodePoolConfig, pool, where))
    config: ClusterConfig = _build(ClusterConfig, {**values, "node_pools": tuple(built)}, "cluster")
    return config


def _build(kind: Any, values: dict[str, Any], where: str) -> Any:
    try:
        return kind(**values)
    except (TypeError, AttributeError) as error:
        raise ConfigurationError(f"{where}: a value has the wrong type: {error}") from None


def _checked(kind: Any, data: Any, where: str) -> dict[str, Any]:
    if not isinstance(data, Mapping):
        raise ConfigurationError(f"{where}: expected keys and values, found {type(data).__name__}")
    known = [entry.name for entry in dataclasses.fields(kind)]
    for key in data:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
            raise ConfigurationError(f"{where}: unknown key {key!r}; {hint}")
    return dict(data)


def _not_negative(where: str, name: str, value: float) -> None:
    if not (math.isfinite(value) and value >= 0):
        raise ConfigurationError(f"{where}: {name} is {value}; it must be 0 or more")


def _positive(where: str, name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ConfigurationError(f"{where}: {name} is {value}; it must be more than 0")
