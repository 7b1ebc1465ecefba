"""The capacity file as pydantic models: its shape, defaults and help texts.

Checks of single values live in ``values`` and ``names``. The models keep the file's own words (``class``,
``max_hold``); ``convert`` turns them into :class:`~airflow_elastic.model.settings.Settings`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import core_schema

from airflow_elastic.config import names, values
from airflow_elastic.config.providers import PROVIDERS
from airflow_elastic.model.resources import Resources

__all__ = [
    "MOST_NODES",
    "CapacityFile",
    "ClassEntry",
    "LimitsEntry",
    "NodePoolEntry",
    "RuleEntry",
    "ScalingEntry",
    "fields_of",
    "model_at",
]

MOST_NODES = 10_000
_DAY = 86400.0


@dataclass(frozen=True, eq=False)  # hashed by identity: typing hashes what annotates
class _Checked:
    """Annotation of a field: our own check with our own words, and its JSON schema."""

    check: Callable[[object], Any]
    json_schema: dict[str, Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return dict(self.json_schema)


def _seconds(at_least: float, at_most: float) -> _Checked:
    pattern = r"^(\s*(\d+(\.\d*)?|\.\d+)\s*(ms|s|m|h|d))+\s*$"
    seconds = {"type": "number", "minimum": at_least, "maximum": at_most}
    return _Checked(values.duration(at_least, at_most), {"anyOf": [seconds, {"type": "string", "pattern": pattern}]})


def _count(at_least: int, at_most: int) -> _Checked:
    bounds = {"type": "integer", "minimum": at_least, "maximum": at_most}
    return _Checked(values.whole_number(at_least, at_most), bounds)


def _number(at_least: float, at_most: float) -> _Checked:
    bounds = {"type": "number", "minimum": at_least, "maximum": at_most}
    return _Checked(values.number(at_least, at_most), bounds)


def _word(*words: str) -> _Checked:
    return _Checked(values.choice(*words), {"type": "string", "enum": list(words)})


def _string(check: Callable[[object], str], **schema: Any) -> _Checked:
    return _Checked(check, {"type": "string", "minLength": 1, **schema})


def _quantities(what: str, *, required: tuple[str, ...] = (), example: str) -> _Checked:
    schema: dict[str, Any] = {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {"type": ["string", "number"]},
    }
    if required:
        schema["required"] = list(required)
    return _Checked(names.resources(what, required=required, example=example), schema)


ClassName = Annotated[str, _string(names.class_name, maxLength=63)]
NodePoolName = Annotated[str, _string(names.node_pool_name, maxLength=63, pattern=names.NODE_POOL_NAME)]
LabelKey = Annotated[str, _string(names.label_key, maxLength=317)]
LabelValue = Annotated[str, _string(names.label_value, minLength=0, maxLength=63)]
OptionText = Annotated[str, _string(names.provider_option)]
Pattern = Annotated[str, _string(names.task_pattern)]
Nodes = Annotated[int, _count(0, MOST_NODES)]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class TaintEntry(_Entry):
    """A taint, as ``{key: dedicated, value: batch, effect: NoSchedule}``."""

    key: LabelKey
    """The taint's key, such as dedicated."""
    value: LabelValue = ""
    """The taint's value."""
    effect: Annotated[str, _word("NoSchedule", "PreferNoSchedule", "NoExecute")] = "NoSchedule"
    """What it does to pods that do not tolerate it."""


class TolerationEntry(_Entry):
    """A toleration, as ``{key: dedicated, value: batch, effect: NoSchedule}``."""

    key: LabelKey
    """Key of the taint that is tolerated, such as dedicated."""
    value: LabelValue = ""
    """Value of the taint; empty: any value."""
    effect: Annotated[str, _word("", "NoSchedule", "PreferNoSchedule", "NoExecute")] = ""
    """Effect of the taint; empty: every effect."""


class NodePoolEntry(_Entry):
    """A node pool, as ``{selector: {node-pool: batch}, shape: {cpu: 4, memory: 16Gi}}``: interchangeable nodes."""

    selector: dict[LabelKey, LabelValue] = Field(json_schema_extra={"minProperties": 1})
    """Labels that every node of the pool carries and no other node does, such as {node-pool: batch}."""
    shape: Annotated[Resources, _quantities("shape", required=("cpu", "memory"), example="{cpu: 4, memory: 16Gi}")]
    """What one empty node offers to pods (its allocatable), such as {cpu: "4", memory: 16Gi}; pods defaults to 110."""
    min_nodes: Nodes = 0
    """Nodes that always stay."""
    max_nodes: Nodes = 10
    """Most nodes that the pool may have."""
    boot_seconds: Annotated[float, _seconds(0, _DAY)] = 90.0
    """First guess of the median time from asking for a node to its being usable; then learnt."""
    boot_seconds_p95: Annotated[float, _seconds(0, _DAY)] | None = None
    """First guess of the time within which 95 of 100 nodes are usable; default: twice boot_seconds."""
    price_per_node_hour: Annotated[float, _number(0, 1_000_000)] = 1.0
    """What a node costs in an hour, in your currency."""
    capacity_type: Annotated[str, _word("reserved", "on-demand", "spot")] = "on-demand"
    """How the machines are paid for: reserved, on-demand or spot."""
    provider: Annotated[str, _word(*PROVIDERS)] = "placeholder"
    """What brings and removes nodes: placeholder (pods, for any autoscaler), scale (an object's scale), none."""
    provider_options: dict[str, OptionText] = Field(default_factory=dict)
    """Options of the provider; scale: group, version, plural, name, and namespace where the object has one."""
    taints: list[TaintEntry] = Field(default_factory=list)
    """Taints that all nodes of the pool carry; tasks of its classes tolerate them."""


class ClassEntry(_Entry):
    """A capacity class, as ``{node_pools: [elastic], slot_shape: {cpu: 1, memory: 2Gi}}``: what tasks may run on."""

    node_pools: list[NodePoolName] = Field(json_schema_extra={"minItems": 1})
    """Node pools that its tasks may use, the preferred one first, such as [spot, on-demand]."""
    airflow_pool: Annotated[str, _string(names.airflow_pool, maxLength=256)] | None = None
    """Airflow pool whose slots follow the usable nodes; default: the class's name."""
    slot_shape: Annotated[Resources, _quantities("slot_shape", example="{cpu: 1, memory: 2Gi}")]
    """What one slot of the Airflow pool stands for, such as {cpu: "1", memory: 2Gi}."""
    priority_class: Annotated[str, _string(names.priority_class, minLength=0)] = ""
    """Kubernetes PriorityClass of its pods; empty: the cluster's default."""
    evictable: Annotated[bool, _Checked(values.flag, {"type": "boolean"})] = False
    """May its pods be evicted for another class or to let a node go?"""
    wait_price_ratio: Annotated[float, _number(0, 1_000_000)] = 9.0
    """Price of a second of waiting in prices of an idle node-second: 9 readies nodes in time for 9 tasks of 10."""
    tolerations: list[TolerationEntry] = Field(default_factory=list)
    """Tolerations beside those for the taints of its node pools."""


class RuleEntry(_Entry):
    """A rule that gives a class to tasks that name none, such as ``{class: core, dag_id: "billing_*"}``."""

    capacity_class: ClassName = Field(alias="class")
    """The class that matching tasks get."""
    dag_id: Pattern = "*"
    """Shell pattern for the DAG's id."""
    task_id: Pattern = "*"
    """Shell pattern for the task's id."""
    operator: Pattern = "*"
    """Shell pattern for the operator's class name."""
    tag: Pattern = "*"
    """Shell pattern that one of the DAG's tags matches."""


class LimitsEntry(_Entry):
    """What one run may ask for by its own annotation, as ``{max_nodes: 20, max_hold: 4h}``."""

    max_nodes: Nodes = 20
    """Most nodes that one run may ask for."""
    max_hold: Annotated[float, _seconds(0, 30 * _DAY)] = 4 * 3600.0
    """Longest that one run may hold nodes."""
    allowed_classes: list[ClassName] = Field(default_factory=list)
    """Classes that a run may ask for; empty: every class."""


class ScalingEntry(_Entry):
    """How the controller scales, as ``{scale_in_cooldown: 60s, max_hold: 1h}``."""

    tick_seconds: Annotated[float, _seconds(0.1, 300)] = 1.0
    """Time between two looks at Airflow and the cluster."""
    horizon: Annotated[float, _seconds(60, 14 * _DAY)] = 6 * 3600.0
    """How far ahead coming runs are read."""
    max_hold: Annotated[float, _seconds(1, 7 * _DAY)] = 3600.0
    """Longest that warm capacity is held for one run without its use, whatever happens."""
    scale_in_cooldown: Annotated[float, _seconds(0, _DAY)] = 60.0
    """No node of a pool goes sooner than this after the pool's last scale-out."""
    hold_factor: Annotated[float, _number(0, 100)] = 1.0
    """An idle node stays while a need is forecast within this many boot times."""
    prewarm_margin: Annotated[float, _seconds(0, 3600)] = 5.0
    """Added to the learnt boot time when nodes are asked for ahead."""
    default_task: Annotated[float, _seconds(0.1, 7 * _DAY)] = 300.0
    """Expected duration of a task of which nothing is known."""
    stale_after: Annotated[float, _seconds(1, 3600)] = 60.0
    """A view of the cluster older than this freezes every action."""


class CapacityFile(_Entry):
    """A capacity file of airflow-elastic: node pools, capacity classes and limits of one Airflow installation."""

    version: Annotated[int, _Checked(values.whole_number(1, 1), {"type": "integer", "const": 1})]
    """Version of the file's format: 1."""
    mode: Annotated[str, _word("observe", "sync", "manage")] = "observe"
    """observe: recommend only; sync: keep Airflow's pools true; manage: bring and release nodes as well."""
    namespace: Annotated[str, _string(names.dns_label, maxLength=63)] = "default"
    """Kubernetes namespace for placeholders and the leader's lease, and the default for tasks."""
    default_class: Annotated[str, _string(names.optional_class_name, minLength=0, maxLength=63)] = ""
    """Class of an elastic task that names none; default: the first class."""
    default_requests: Annotated[Resources, _quantities("default_requests", example="{cpu: 1, memory: 512Mi}")] = Field(
        default_factory=lambda: Resources.of(cpu=1000, memory=512 * 2**20)
    )
    """Counted for a task that states no requests."""
    node_pools: dict[NodePoolName, NodePoolEntry] = Field(
        json_schema_extra={"additionalProperties": False, "minProperties": 1}
    )
    """Node pools by name."""
    classes: dict[ClassName, ClassEntry] = Field(json_schema_extra={"minProperties": 1})
    """Capacity classes by name."""
    rules: list[RuleEntry] = Field(default_factory=list)
    """Give classes to tasks that name none; the first rule that matches wins."""
    limits: LimitsEntry = Field(default_factory=LimitsEntry)
    """What one run may ask for by its own annotation."""
    scaling: ScalingEntry = Field(default_factory=ScalingEntry)
    """How the controller scales."""


# Where a model's key leads: the model below it, and how many path parts (a name, an index) stand between.
_BELOW: dict[tuple[type[BaseModel], str], tuple[type[BaseModel], int]] = {
    (CapacityFile, "node_pools"): (NodePoolEntry, 1),
    (CapacityFile, "classes"): (ClassEntry, 1),
    (CapacityFile, "rules"): (RuleEntry, 1),
    (CapacityFile, "limits"): (LimitsEntry, 0),
    (CapacityFile, "scaling"): (ScalingEntry, 0),
    (NodePoolEntry, "taints"): (TaintEntry, 1),
    (ClassEntry, "tolerations"): (TolerationEntry, 1),
}


def model_at(path: tuple[str | int, ...]) -> type[BaseModel] | None:
    """Return the model of the mapping at ``path``, None where a plain value stands."""
    model: type[BaseModel] = CapacityFile
    index = 0
    while index < len(path):
        below = _BELOW.get((model, str(path[index])))
        if below is None or index + below[1] >= len(path):
            return None
        model, skipped = below
        index += 1 + skipped
    return model


def fields_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return a model's fields by the names that the file uses."""
    return {info.alias or name: info for name, info in model.model_fields.items()}
