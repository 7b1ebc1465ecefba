"""`airflow elastic validate`: all mistakes of a capacity file, or what a good one says."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_elastic.cli.output import emit, to_json
from airflow_elastic.config import CapacityFileError, configured_path, json_schema, load_settings
from airflow_elastic.config.values import format_duration
from airflow_elastic.errors import ConfigurationError
from airflow_elastic.model.capacity_class import CapacityClass
from airflow_elastic.model.resources import Resources, format_amount
from airflow_elastic.model.settings import Settings

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["describe", "run"]


def run(args: argparse.Namespace) -> None:
    """Check the capacity file that is named or configured."""
    if args.schema:
        print(to_json(json_schema()))  # noqa: T201 - the schema is the command's output
        return
    path = args.file or configured_path()
    if not path:
        raise ConfigurationError(
            "No capacity file: name one (airflow elastic validate FILE) or set [elastic] capacity_file "
            "(AIRFLOW__ELASTIC__CAPACITY_FILE); airflow elastic init proposes one."
        )
    try:
        settings = load_settings(path)
    except CapacityFileError as error:
        document = {"file": path, "valid": False, "mistakes": [mistake.as_dict() for mistake in error.mistakes]}
        emit(args, document, partial(_mistakes, error))
        raise SystemExit(1) from None
    emit(args, describe(settings), lambda: _tables(settings))


def describe(settings: Settings) -> dict[str, Any]:
    """Return what a good capacity file says, as plain data."""
    return {
        "file": settings.source,
        "valid": True,
        "mistakes": [],
        "mode": settings.mode.value,
        "default_class": default.name if (default := settings.capacity_class("")) else "",
        "node_pools": [
            {
                "name": pool.name,
                "selector": dict(pool.selector),
                "shape": _quantities(pool.shape),
                "min_nodes": pool.min_nodes,
                "max_nodes": pool.max_nodes,
                "boot_seconds": pool.boot_seconds,
                "price_per_node_hour": pool.price_per_node_hour,
                "capacity_type": pool.capacity_type.value,
                "provider": pool.provider,
                "classes": [each.name for each in settings.classes_on(pool.name)],
            }
            for pool in settings.node_pools
        ],
        "classes": [
            {
                "name": each.name,
                "node_pools": list(each.node_pools),
                "airflow_pool": each.airflow_pool,
                "slot_shape": _quantities(each.slot_shape),
                "slots_per_node": _slots_per_node(settings, each),
                "most_slots": _most_slots(settings, each),
                "evictable": each.evictable,
                "priority_class": each.priority_class,
            }
            for each in settings.classes
        ],
    }


def _quantities(resources: Resources) -> dict[str, str]:
    return {name: format_amount(name, amount) for name, amount in resources.amounts}


def _slots_per_node(settings: Settings, each: CapacityClass) -> dict[str, int]:
    pools = [pool for name in each.node_pools if (pool := settings.node_pool(name))]
    return {pool.name: each.slot_shape.how_often_in(pool.shape) for pool in pools}


def _most_slots(settings: Settings, each: CapacityClass) -> int:
    per_node = _slots_per_node(settings, each)
    return sum(slots * pool.max_nodes for name, slots in per_node.items() if (pool := settings.node_pool(name)))


def _mistakes(error: CapacityFileError) -> RenderableType:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title, style in (("line", "cyan"), ("key", "bold"), ("what is wrong", "red"), ("what would be right", "green")):
        table.add_column(title, style=style, overflow="fold")
    for mistake in error.mistakes:
        place = f"{mistake.line}:{mistake.column}" if mistake.line else ""
        table.add_row(place, Text(mistake.key or "(file)"), Text(mistake.wrong), Text(mistake.right))
    count = len(error.mistakes)
    return Group(Text(f"{error.source}: {count} mistake{'s' if count != 1 else ''}", style="bold red"), table)


def _tables(settings: Settings) -> RenderableType:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    pools = Table(title="Node pools", title_justify="left", header_style="bold")
    for title in ("name", "nodes", "one node", "boot", "price/h", "paid as", "provider", "classes"):
        pools.add_column(title, overflow="fold")
    for pool in settings.node_pools:
        pools.add_row(
            Text(pool.name),
            f"{pool.min_nodes}–{pool.max_nodes}",
            pool.shape.as_text(),
            f"{format_duration(pool.boot_seconds)} (p95 {format_duration(pool.boot_seconds_p95)})",
            f"{pool.price_per_node_hour:g}",
            pool.capacity_type.value,
            pool.provider,
            Text(", ".join(each.name for each in settings.classes_on(pool.name)) or "none"),
        )
    classes = Table(title="Capacity classes", title_justify="left", header_style="bold")
    for title in ("name", "Airflow pool", "one slot", "slots per node", "most slots", "evictable"):
        classes.add_column(title, overflow="fold")
    default = settings.capacity_class("")
    for each in settings.classes:
        classes.add_row(
            Text(f"{each.name} (default)" if each is default else each.name),
            Text(each.airflow_pool),
            each.slot_shape.as_text(),
            Text(", ".join(f"{name} {slots}" for name, slots in _slots_per_node(settings, each).items())),
            f"{_most_slots(settings, each):,}",
            "yes" if each.evictable else "no",
        )
    verdict = Text(f"{settings.source} is good: mode {settings.mode.value}", style="bold green")
    return Group(verdict, pools, classes)
