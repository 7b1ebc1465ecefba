"""What no single value can tell: references, pairs that contradict each other, shapes that never fit.

The checks run on drafts, in which a value that is wrong by itself is simply absent: it has been reported already, and
everything else can still be judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any

from airflow_elastic.config.defaults import with_pods
from airflow_elastic.config.document import Document
from airflow_elastic.config.providers import PROVIDERS
from airflow_elastic.config.values import format_duration, listed, shown, suggestion

if TYPE_CHECKING:
    from pydantic import BaseModel, TypeAdapter

__all__ = ["check_references"]

_MOST_SLOTS = 100_000_000
Draft = dict[str, Any]


def check_references(document: Document) -> None:
    """Add every mistake that lies between values to ``document.mistakes``."""
    from airflow_elastic.config import schema

    data = document.data
    pools = {name: _draft(schema.NodePoolEntry, raw) for name, raw in _mapping(data.get("node_pools")).items()}
    classes = {name: _draft(schema.ClassEntry, raw) for name, raw in _mapping(data.get("classes")).items()}
    for section, entries, example in (
        ("node_pools", pools, "declare at least one, with a selector and a shape"),
        ("classes", classes, "declare at least one, such as burst, with node_pools and slot_shape"),
    ):
        if isinstance(data.get(section), dict) and not entries:
            document.add((section,), "is empty", example)
    for name, pool in pools.items():
        _check_bounds(document, name, pool)
        _check_provider(document, name, pool)
    _check_overlaps(document, pools)
    for name, each in classes.items():
        _check_class_pools(document, name, each, pools)
        _check_slot_shape(document, name, each, pools)
    _check_airflow_pools(document, classes)
    _check_class_names(document, data, classes)
    _check_scaling(document, _draft(schema.ScalingEntry, data.get("scaling", {})), pools)


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


@lru_cache(maxsize=64)
def _adapter(model: type[BaseModel], field: str) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    info = model.model_fields[field]
    annotation: Any = info.annotation
    for metadata in info.metadata:
        annotation = Annotated[annotation, metadata]
    return TypeAdapter(annotation)


def _draft(model: type[BaseModel], raw: object) -> Draft:
    """Return the values of an entry that are right by themselves, defaults included, by the model's field names."""
    draft: Draft = {}
    given = _mapping(raw)
    for name, info in model.model_fields.items():
        key = info.alias or name
        if key in given:
            try:
                draft[name] = _adapter(model, name).validate_python(given[key])
            except ValueError:
                continue
        elif not info.is_required() and isinstance(raw, dict):
            draft[name] = info.get_default(call_default_factory=True)
    return draft


def _check_bounds(document: Document, name: str, pool: Draft) -> None:
    path = ("node_pools", name)
    least, most = pool.get("min_nodes"), pool.get("max_nodes")
    if least is not None and most is not None and least > most:
        document.add((*path, "min_nodes"), f"min_nodes {least} is more than max_nodes {most}",
                     f"lower min_nodes to at most {most} or raise max_nodes")  # fmt: skip
    median, slow = pool.get("boot_seconds"), pool.get("boot_seconds_p95")
    if median is not None and slow is not None and slow < median:
        document.add((*path, "boot_seconds_p95"), f"{format_duration(slow)} is less than boot_seconds"
                     f" ({format_duration(median)})", "the slow boots take longer than the median one")  # fmt: skip
    if pool.get("selector") == {}:
        document.add((*path, "selector"), "the selector is empty and would take every node of the cluster",
                     "name a label that only this pool's nodes carry")  # fmt: skip


def _check_provider(document: Document, name: str, pool: Draft) -> None:
    provider, options = pool.get("provider"), pool.get("provider_options")
    if provider is None or options is None:
        return
    path = ("node_pools", name, "provider_options")
    known = PROVIDERS[provider]
    for option in options:
        if option not in known.known:
            document.add((*path, option), f"provider {provider} has no such option",
                         suggestion(option, known.known, none="remove it"), key=True)  # fmt: skip
    missing = [option for option in known.required if not options.get(option)]
    if missing:
        # Without any options the provider's own line is the nearest place.
        place = document.place(path if options else ("node_pools", name, "provider"))
        document.add(path, f"provider {provider} needs {' and '.join(missing)}",
                     "name the object with a scale subresource, such as {group: cluster.x-k8s.io, version: v1beta1, "
                     "plural: machinedeployments, name: batch}", place=place)  # fmt: skip


def _check_overlaps(document: Document, pools: dict[str, Draft]) -> None:
    """Two pools must not claim one node, nor scale one object."""
    selectors: dict[frozenset[tuple[str, str]], str] = {}
    targets: dict[tuple[tuple[str, str], ...], str] = {}
    for name, pool in pools.items():
        path = ("node_pools", name)
        if selector := pool.get("selector"):
            mine = frozenset(selector.items())
            for other, its_name in _overlapping(mine, selectors):
                wrong = (
                    f"has the same selector as node pool {shown(its_name)}"
                    if mine == other
                    else f"{'every node of it is also one' if other < mine else 'it takes every node'}"
                    f" of node pool {shown(its_name)}"
                )
                document.add((*path, "selector"), wrong, "add a label that tells their nodes apart to both selectors")
            selectors.setdefault(mine, name)
        if pool.get("provider") == "scale" and (options := pool.get("provider_options")):
            target = tuple(sorted(options.items()))
            if target in targets:
                document.add((*path, "provider_options"), f"scales the same object as node pool "
                             f"{shown(targets[target])}", "name this pool's own object")  # fmt: skip
            targets.setdefault(target, name)


def _overlapping(
    mine: frozenset[tuple[str, str]], others: dict[frozenset[tuple[str, str]], str]
) -> Iterator[tuple[frozenset[tuple[str, str]], str]]:
    # One finding a pool is enough; an equal selector is the clearest.
    if mine in others:
        yield mine, others[mine]
        return
    # Compared pair by pair only where there are few pools: a file of thousands has no subset by hand.
    if len(others) <= 500:
        found = next(((other, name) for other, name in others.items() if other <= mine or mine <= other), None)
        if found:
            yield found


def _check_class_pools(document: Document, name: str, each: Draft, pools: dict[str, Draft]) -> None:
    path = ("classes", name, "node_pools")
    wanted = each.get("node_pools")
    if wanted is None:
        return
    if not wanted:
        document.add(path, "the list is empty", f"name at least one node pool: {listed(pools) or 'none is declared'}")
    for index, pool in enumerate(wanted):
        if pool not in pools:
            document.add((*path, index), f"there is no node pool {shown(pool)}",
                         suggestion(pool, pools, none="declare it under node_pools"))  # fmt: skip
        elif pool in wanted[:index]:
            document.add((*path, index), f"node pool {shown(pool)} is there twice", "keep one of them")


def _check_slot_shape(document: Document, name: str, each: Draft, pools: dict[str, Draft]) -> None:
    """A slot must fit on some node of the class, and the class must not have more slots than Airflow can count."""
    slot, wanted = each.get("slot_shape"), each.get("node_pools")
    if not wanted or slot is None or any("shape" not in pools.get(pool, {}) for pool in wanted):
        return
    path = ("classes", name, "slot_shape")
    shapes = {pool: with_pods(pools[pool]["shape"]) for pool in wanted}
    if not any(slot.fits_in(shape) for shape in shapes.values()):
        offered = "; ".join(f"{pool}: {shape.as_text()}" for pool, shape in list(shapes.items())[:3])
        document.add(path, f"a slot ({slot.as_text()}) fits on no node of its node pools ({offered})",
                     "make the slot shape at most one node's shape")  # fmt: skip
    slots = sum(slot.how_often_in(shape) * pools[pool].get("max_nodes", 0) for pool, shape in shapes.items())
    if slots > _MOST_SLOTS:
        document.add(path, f"the class would have {slots:,} slots", f"make the slot shape larger: at most "
                     f"{_MOST_SLOTS:,} slots make sense in an Airflow pool")  # fmt: skip


def _check_airflow_pools(document: Document, classes: dict[str, Draft]) -> None:
    owners: dict[str, tuple[str, Any]] = {}
    for name, each in classes.items():
        if "airflow_pool" not in each or each.get("slot_shape") is None:
            continue
        pool = name if each["airflow_pool"] is None else each["airflow_pool"]
        owner, shape = owners.setdefault(pool, (name, each["slot_shape"]))
        if shape != each["slot_shape"]:
            document.add(("classes", name, "slot_shape"), f"classes {shown(owner)} and {shown(name)} share the Airflow "
                         f"pool {shown(pool)} but not the slot shape ({shape.as_text()} against "
                         f"{each['slot_shape'].as_text()})",
                         "give both the same slot_shape, or each its own airflow_pool")  # fmt: skip


def _check_class_names(document: Document, data: dict[str, Any], classes: dict[str, Draft]) -> None:
    """Names of classes outside ``classes``: the default, the rules, the limits."""

    def check(path: tuple[str | int, ...], name: object) -> None:
        if isinstance(name, str) and name and name not in classes:
            document.add(path, f"there is no class {shown(name)}", suggestion(name, classes, none="declare it"))

    check(("default_class",), data.get("default_class"))
    rules = data.get("rules")
    for index, rule in enumerate(rules if isinstance(rules, list) else []):
        check(("rules", index, "class"), _mapping(rule).get("class"))
    allowed = _mapping(data.get("limits")).get("allowed_classes")
    for index, name in enumerate(allowed if isinstance(allowed, list) else []):
        check(("limits", "allowed_classes", index), name)


def _check_scaling(document: Document, scaling: Draft, pools: dict[str, Draft]) -> None:
    tick, stale = scaling.get("tick_seconds"), scaling.get("stale_after")
    if tick is not None and stale is not None and stale < 2 * tick:
        document.add(("scaling", "stale_after"), f"{format_duration(stale)} is less than two ticks "
                     f"({format_duration(tick)} each): every action would be frozen",
                     f"write at least {format_duration(2 * tick)}")  # fmt: skip
    horizon, margin = scaling.get("horizon"), scaling.get("prewarm_margin")
    boots = {name: pool["boot_seconds"] for name, pool in pools.items() if "boot_seconds" in pool}
    slowest = max(boots, key=lambda name: boots[name], default=None)
    if horizon is not None and margin is not None and slowest is not None and horizon < boots[slowest] + margin:
        document.add(("scaling", "horizon"), f"{format_duration(horizon)} ahead is too late for node pool "
                     f"{shown(slowest)}, whose nodes boot in {format_duration(boots[slowest])}",
                     "look further ahead than the slowest node boots")  # fmt: skip
