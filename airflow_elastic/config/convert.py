"""From the models of a capacity file without mistakes to :class:`Settings`."""

from __future__ import annotations

from airflow_elastic.config.defaults import with_pods
from airflow_elastic.config.schema import CapacityFile, ClassEntry, NodePoolEntry
from airflow_elastic.model.capacity_class import CapacityClass, TaskRule
from airflow_elastic.model.node_pool import CapacityType, NodePool, Taint
from airflow_elastic.model.settings import Mode, RunLimits, ScalingRules, Settings

__all__ = ["to_settings"]


def to_settings(file: CapacityFile, source: str) -> Settings:
    """Return the settings that a capacity file stands for."""
    return Settings(
        node_pools=tuple(_node_pool(name, entry) for name, entry in file.node_pools.items()),
        classes=tuple(_capacity_class(name, entry) for name, entry in file.classes.items()),
        mode=Mode(file.mode),
        default_class=file.default_class,
        rules=tuple(
            TaskRule(rule.capacity_class, rule.dag_id, rule.task_id, rule.operator, rule.tag) for rule in file.rules
        ),
        limits=RunLimits(
            max_nodes=file.limits.max_nodes,
            max_hold_seconds=file.limits.max_hold,
            allowed_classes=tuple(file.limits.allowed_classes),
        ),
        scaling=ScalingRules(
            tick_seconds=file.scaling.tick_seconds,
            horizon_seconds=file.scaling.horizon,
            max_hold_seconds=file.scaling.max_hold,
            scale_in_cooldown_seconds=file.scaling.scale_in_cooldown,
            hold_factor=file.scaling.hold_factor,
            prewarm_margin_seconds=file.scaling.prewarm_margin,
            default_task_seconds=file.scaling.default_task,
            stale_after_seconds=file.scaling.stale_after,
        ),
        namespace=file.namespace,
        default_requests=file.default_requests,
        source=source,
    )


def _node_pool(name: str, entry: NodePoolEntry) -> NodePool:
    return NodePool(
        name=name,
        selector=tuple(entry.selector.items()),
        shape=with_pods(entry.shape),
        min_nodes=entry.min_nodes,
        max_nodes=entry.max_nodes,
        boot_seconds=entry.boot_seconds,
        boot_seconds_p95=2 * entry.boot_seconds if entry.boot_seconds_p95 is None else entry.boot_seconds_p95,
        price_per_node_hour=entry.price_per_node_hour,
        capacity_type=CapacityType(entry.capacity_type),
        provider=entry.provider,
        provider_options=tuple(entry.provider_options.items()),
        taints=tuple(Taint(taint.key, taint.value, taint.effect) for taint in entry.taints),
    )


def _capacity_class(name: str, entry: ClassEntry) -> CapacityClass:
    return CapacityClass(
        name=name,
        node_pools=tuple(entry.node_pools),
        airflow_pool=name if entry.airflow_pool is None else entry.airflow_pool,
        slot_shape=entry.slot_shape,
        priority_class=entry.priority_class,
        evictable=entry.evictable,
        wait_price_ratio=entry.wait_price_ratio,
        tolerations=tuple((each.key, each.value, each.effect) for each in entry.tolerations),
    )
