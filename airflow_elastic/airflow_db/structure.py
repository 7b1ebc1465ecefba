"""A DAG's structure, read from its serialized JSON without building the DAG.

Building a thousand DAGs costs seconds and hundreds of megabytes in every reader; what planning needs is a few fields
of each task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_elastic.airflow_db.encoding import decoded, literal_width
from airflow_elastic.model.carrier import TaskCapacity, read_carrier

__all__ = ["DagStructure", "TaskStructure", "parse_structure"]

ANNOTATION_PARAM = "elastic"


@dataclass(frozen=True, slots=True)
class TaskStructure:
    """One task as the DAG file declares it."""

    task_id: str
    upstream: tuple[str, ...] = ()
    trigger_rule: str = "all_success"
    capacity: TaskCapacity | None = None
    """What its carrier says; None: it has none."""
    is_mapped: bool = False
    """It is mapped itself, or within a mapped task group."""
    width: int | None = None
    """Number of mapped instances where the DAG file states it (literal lists); None: known only at run time."""
    pool: str = "default_pool"
    pool_slots: int = 1
    is_empty: bool = False
    """The scheduler marks it done without starting anything (EmptyOperator)."""


@dataclass(frozen=True, slots=True)
class DagStructure:
    """A DAG as its file declares it; ``tasks`` in topological order."""

    dag_id: str
    dag_hash: str
    tasks: tuple[TaskStructure, ...]
    max_active_tasks: int = 16
    max_active_runs: int = 16
    annotation: object = None
    """Default of the DAG's param ``elastic``."""
    timetable: Mapping[str, Any] | None = None
    """The timetable's serialized form."""
    catchup: bool = False
    earliest: float | None = None
    """No run starts before this (Unix seconds): the earliest start date of DAG and tasks."""
    latest: float | None = None

    def uses(self, airflow_pools: frozenset[str]) -> bool:
        """Tell whether a task of it may need a node: it has a carrier, or goes through one of ``airflow_pools``."""
        return any(task.capacity is not None or task.pool in airflow_pools for task in self.tasks)


def parse_structure(data: Mapping[str, Any], dag_hash: str = "") -> DagStructure:
    """Return the structure that a serialized DAG describes.

    Raises:
        ValueError: a field is missing or of another kind than Airflow writes, or the tasks form a cycle.
    """
    try:
        dag = data["dag"]
        encoded = [_task_fields(entry) for entry in dag["tasks"]]
        upstream = _upstream_of(encoded)
        widths = dict(_group_widths(dag.get("task_group") or {}, is_mapped=False, width=1))
        tasks = [_task(fields, upstream, widths) for fields in encoded]
        earliest, latest = _limits(dag, encoded)
        params = {str(name): value for name, value in _pairs(dag.get("params"))}
        param = params.get(ANNOTATION_PARAM)
        return DagStructure(
            dag_id=str(dag["dag_id"]),
            dag_hash=dag_hash,
            tasks=tuple(_topological(tasks)),
            max_active_tasks=int(dag.get("max_active_tasks") or 16),
            max_active_runs=int(dag.get("max_active_runs") or 16),
            annotation=decoded(param.get("default")) if isinstance(param, Mapping) else None,
            timetable=dag.get("timetable"),
            catchup=bool(dag.get("catchup", False)),
            earliest=earliest,
            latest=latest,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"its serialized form is not what Airflow writes ({type(error).__name__}: {error})") from error


def _task_fields(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return a task's fields; those of a mapped task that are not expanded lie in ``partial_kwargs``."""
    fields = dict(entry.get("__var", entry))
    return {**(fields.get("partial_kwargs") or {}), **fields}


def _task(
    fields: Mapping[str, Any], upstream: Mapping[str, list[str]], groups: Mapping[str, tuple[bool, int | None]]
) -> TaskStructure:
    task_id = str(fields["task_id"])
    in_mapped_group, width = groups.get(task_id, (False, 1))
    is_mapped = bool(fields.get("_is_mapped", False))
    if is_mapped:
        own = literal_width(fields.get(str(fields.get("_expand_input_attr", "expand_input"))))
        width = None if own is None or width is None else width * own
    return TaskStructure(
        task_id=task_id,
        upstream=tuple(sorted(upstream.get(task_id, ()))),
        trigger_rule=str(fields.get("trigger_rule") or "all_success"),
        capacity=read_carrier(decoded(fields.get("executor_config"))),
        is_mapped=is_mapped or in_mapped_group,
        width=width,
        pool=str(fields.get("pool") or "default_pool"),
        pool_slots=max(1, int(fields.get("pool_slots") or 1)),
        is_empty=bool(fields.get("_is_empty", False)),
    )


def _upstream_of(encoded: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    known = {fields["task_id"] for fields in encoded}
    upstream: dict[str, list[str]] = {}
    for fields in encoded:
        for downstream in fields.get("downstream_task_ids") or ():
            if downstream in known:
                upstream.setdefault(downstream, []).append(fields["task_id"])
    return upstream


def _group_widths(
    group: Mapping[str, Any], *, is_mapped: bool, width: int | None
) -> Iterator[tuple[str, tuple[bool, int | None]]]:
    """Yield for every task within a mapped task group (at any depth) the product of the groups' widths."""
    if group.get("is_mapped"):
        own = literal_width(group.get("expand_input"))
        is_mapped, width = True, None if own is None or width is None else width * own
    for kind, child in (group.get("children") or {}).values():
        if isinstance(child, Mapping):
            yield from _group_widths(child, is_mapped=is_mapped, width=width)
        elif kind == "operator" and is_mapped:
            yield str(child), (True, width)


def _limits(dag: Mapping[str, Any], encoded: Sequence[Mapping[str, Any]]) -> tuple[float | None, float | None]:
    """Return the DAG's earliest and latest run as Airflow derives them: a task without a date has the DAG's."""
    first, last = decoded(dag.get("start_date")), decoded(dag.get("end_date"))
    starts = [date for fields in encoded if (date := decoded(fields.get("start_date")) or first) is not None]
    ends = [date for fields in encoded if (date := decoded(fields.get("end_date")) or last) is not None]
    if first is not None:
        starts.append(first)
    latest = last
    if ends and len(ends) == len(encoded):
        latest = max(ends if last is None else [*ends, last])
    return (float(min(starts)) if starts else None), (float(latest) if latest is not None else None)


def _topological(tasks: Sequence[TaskStructure]) -> Iterator[TaskStructure]:
    waiting = {task.task_id: task for task in tasks}
    while waiting:
        free = [task for task in waiting.values() if not any(name in waiting for name in task.upstream)]
        if not free:
            raise ValueError(f"its tasks form a cycle among {', '.join(sorted(waiting)[:5])}")
        for task in free:
            del waiting[task.task_id]
            yield task


def _pairs(params: object) -> Iterator[tuple[Any, Any]]:
    if isinstance(params, Mapping):
        yield from params.items()
    elif isinstance(params, list):
        yield from ((name, value) for name, value in params)
