"""Settings → the text of a commented capacity file. What is rendered reads back as the same settings."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from airflow_elastic.config.document import resolve_plain
from airflow_elastic.config.values import format_duration
from airflow_elastic.model.capacity_class import CapacityClass, TaskRule
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.resources import Resources, format_amount
from airflow_elastic.model.settings import RunLimits, ScalingRules, Settings

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["render_capacity_file"]

_WIDTH = 116
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*|[0-9]+(m|Ki|Mi|Gi|Ti)")
# YAML 1.1 readers (most editors and tools) take these for truth values.
_NOT_PLAIN = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def render_capacity_file(settings: Settings) -> str:
    """Return a commented capacity file that stands for ``settings``."""
    from airflow_elastic.config import schema

    lines = [
        "# Capacity file of airflow-elastic: the machines below Airflow and what may run on them.",
        "# Check it after each change with: airflow elastic validate FILE",
        "version: 1",
        "",
        *_comment(_help(schema.CapacityFile, "mode"), ""),
        f"mode: {settings.mode.value}",
        *_comment(_help(schema.CapacityFile, "namespace"), ""),
        f"namespace: {_scalar(settings.namespace)}",
        *_comment(_help(schema.CapacityFile, "default_class"), ""),
        f"default_class: {_scalar(settings.default_class)}",
        *_comment(_help(schema.CapacityFile, "default_requests"), ""),
        f"default_requests: {_quantities(settings.default_requests)}",
        "",
        "# Node pools: interchangeable nodes behind one label selector.",
        *_legend(schema.NodePoolEntry),
        "node_pools:" if settings.node_pools else "node_pools: {}",
    ]
    for pool in settings.node_pools:
        lines += _node_pool(pool)
    lines += ["", '# Capacity classes: what tasks of a kind may run on. DAG authors name one: capacity_class="burst".']
    lines += [*_legend(schema.ClassEntry), *_missing_kind(settings)]
    lines.append("classes:" if settings.classes else "classes: {}")
    for each in settings.classes:
        lines += _class(each)
    lines += ["", *_comment(_help(schema.CapacityFile, "rules"), ""), *_rules(settings.rules)]
    lines += ["", '# What one run may ask for by its own annotation, its conf {"elastic": {"nodes": 4}}.', "limits:"]
    lines += _section(schema.LimitsEntry, _limits(settings.limits))
    lines += ["", "# How the controller scales.", "scaling:"]
    lines += _section(schema.ScalingEntry, _scaling(settings.scaling))
    return "\n".join(lines) + "\n"


def _node_pool(pool: NodePool) -> list[str]:
    lines = [f"  {_scalar(pool.name)}:"]
    if pool.provider == "none":
        lines += _comment(
            "Stands as it is (provider none). Does an autoscaler serve it? Then set min_nodes and max_nodes to the "
            "autoscaler's limits and provider to placeholder.", "    ")  # fmt: skip
    lines += [
        f"    selector: {_flow((key, _scalar(value)) for key, value in pool.selector)}",
        f"    shape: {_quantities(pool.shape)}",
        f"    min_nodes: {pool.min_nodes}",
        f"    max_nodes: {pool.max_nodes}",
        f"    boot_seconds: {_number(pool.boot_seconds)}",
        f"    boot_seconds_p95: {_number(pool.boot_seconds_p95)}",
        f"    price_per_node_hour: {_number(pool.price_per_node_hour)}",
        f"    capacity_type: {pool.capacity_type.value}",
        f"    provider: {_scalar(pool.provider)}",
    ]
    if pool.provider_options:
        lines.append(f"    provider_options: {_flow((key, _scalar(value)) for key, value in pool.provider_options)}")
    if pool.taints:
        lines.append("    taints:")
        lines += _tolerated((taint.key, taint.value, taint.effect) for taint in pool.taints)
    return lines


def _class(each: CapacityClass) -> list[str]:
    lines = [
        f"  {_scalar(each.name)}:",
        f"    node_pools: [{', '.join(_scalar(name) for name in each.node_pools)}]",
        f"    airflow_pool: {_scalar(each.airflow_pool)}",
        f"    slot_shape: {_quantities(each.slot_shape)}",
        f"    priority_class: {_scalar(each.priority_class)}",
        f"    evictable: {'true' if each.evictable else 'false'}",
        f"    wait_price_ratio: {_number(each.wait_price_ratio)}",
    ]
    if each.tolerations:
        lines.append("    tolerations:")
        lines += _tolerated(each.tolerations)
    return lines


def _missing_kind(settings: Settings) -> list[str]:
    evictable = {each.evictable for each in settings.classes}
    if evictable == {False}:
        return _comment("Only a class that is never evicted so far: add one such as burst, with evictable: true, on "
                        "pools that come and go.", "")  # fmt: skip
    if evictable == {True}:
        return _comment("Only a class that may be evicted so far: add one such as core, with evictable: false, on "
                        "pools that stand.", "")  # fmt: skip
    return []


def _rules(rules: tuple[TaskRule, ...]) -> list[str]:
    if not rules:
        return ['# For example: {class: core, dag_id: "billing_*"}', "rules: []"]
    lines = ["rules:"]
    for rule in rules:
        patterns = [(name, getattr(rule, name)) for name in ("dag_id", "task_id", "operator", "tag")]
        said = [("class", rule.capacity_class), *(pair for pair in patterns if pair[1] != "*")]
        lines.append(f"  - {_flow((name, _scalar(value)) for name, value in said)}")
    return lines


def _limits(limits: RunLimits) -> dict[str, str]:
    return {
        "max_nodes": str(limits.max_nodes),
        "max_hold": _duration(limits.max_hold_seconds),
        "allowed_classes": f"[{', '.join(_scalar(name) for name in limits.allowed_classes)}]",
    }


def _scaling(scaling: ScalingRules) -> dict[str, str]:
    return {
        "tick_seconds": _number(scaling.tick_seconds),
        "horizon": _duration(scaling.horizon_seconds),
        "max_hold": _duration(scaling.max_hold_seconds),
        "scale_in_cooldown": _duration(scaling.scale_in_cooldown_seconds),
        "hold_factor": _number(scaling.hold_factor),
        "prewarm_margin": _duration(scaling.prewarm_margin_seconds),
        "default_task": _duration(scaling.default_task_seconds),
        "stale_after": _duration(scaling.stale_after_seconds),
    }


def _section(model: type[BaseModel], values: Mapping[str, str]) -> list[str]:
    lines = []
    for name, value in values.items():
        lines += [*_comment(_help(model, name), "  "), f"  {name}: {value}"]
    return lines


def _legend(model: type[BaseModel]) -> list[str]:
    """Return one comment a key, once for all entries of a section."""
    from airflow_elastic.config.schema import fields_of

    names = fields_of(model)
    width = max(len(name) for name in names)
    lines = []
    for name in names:
        lines += textwrap.wrap(
            _help(model, name), _WIDTH,
            initial_indent=f"#   {name:<{width}}  ", subsequent_indent=f"#   {'':<{width}}  ",
        )  # fmt: skip
    return lines


def _help(model: type[BaseModel], name: str) -> str:
    from airflow_elastic.config.schema import fields_of

    return " ".join(str(fields_of(model)[name].description or "").split())


def _comment(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ")


def _tolerated(entries: Iterable[tuple[str, str, str]]) -> list[str]:
    return [
        f"      - {_flow((name, _scalar(text)) for name, text in zip(('key', 'value', 'effect'), each, strict=True))}"
        for each in entries
    ]


def _flow(pairs: Iterable[tuple[str, str]]) -> str:
    return "{" + ", ".join(f"{_scalar(key)}: {value}" for key, value in pairs) + "}"


def _quantities(resources: Resources) -> str:
    return _flow((name, _amount(format_amount(name, amount))) for name, amount in resources.amounts)


def _amount(text: str) -> str:
    return text if text.isdecimal() else _scalar(text)


def _scalar(text: str) -> str:
    is_plain = _PLAIN.fullmatch(text) and text.lower() not in _NOT_PLAIN and isinstance(resolve_plain(text), str)
    return text if is_plain else json.dumps(text, ensure_ascii=False)


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _duration(seconds: float) -> str:
    # Fractions stay numbers: a text of several units would not add up to the very same float.
    return format_duration(seconds) if float(seconds).is_integer() else repr(float(seconds))
