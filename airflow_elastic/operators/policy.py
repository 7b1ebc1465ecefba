"""Tags tasks that are not constructed by us at parse time: mapped tasks, and plain pod tasks by the file's rules.

Runs in the dag-processor before serialization and again in each worker's parse step, so both see the same task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator
from airflow.sdk.bases.operator import BaseOperator

from airflow_elastic.errors import ConfigurationError
from airflow_elastic.model.carrier import write_carrier
from airflow_elastic.model.resources import Resources
from airflow_elastic.model.settings import Settings
from airflow_elastic.operators.errors import MisconfiguredTask, TaskTooWide
from airflow_elastic.operators.launching import remember
from airflow_elastic.operators.pod import ElasticKubernetesPodOperator
from airflow_elastic.operators.requests import larger_of
from airflow_elastic.operators.static_pod import StaticPod
from airflow_elastic.operators.tagging import Tag, class_by_rules, tag_for

__all__ = ["apply_policy"]

_PROVIDER_TIMEOUT_SECONDS = 120  # KubernetesPodOperator's default: taken for "not stated"


def apply_policy(task: Any, settings: Settings) -> None:
    """Tag one pod task (plain or mapped, ours or the provider's).

    Raises:
        TaskTooWide, MisconfiguredTask: the task can never run as it is.
    """
    mapped = not isinstance(task, BaseOperator)
    operator_class = task.operator_class if mapped else type(task)
    elastic = issubclass(operator_class, ElasticKubernetesPodOperator)
    if elastic and not mapped:
        task.apply_capacity(settings)
        return
    view = _View(task, mapped)
    capacity_class = (view.read("capacity_class") or "") if elastic else ""
    if elastic and {"capacity_class", "node_pools", "pool", "pool_slots"} & set(view.mapped_names()):
        raise MisconfiguredTask(
            f"{view.name}: capacity_class, node_pools, pool and pool_slots cannot be mapped over, since a mapped task "
            "has one Airflow pool; give them to partial()"
        )
    capacity_class = capacity_class or class_by_rules(
        settings,
        dag_id=view.dag_id,
        task_id=task.task_id,
        operators=view.operator_names(operator_class),
        tags=view.tags,
    )
    if not (elastic or capacity_class):
        return
    try:
        tag = tag_for(
            settings,
            task=view.name,
            capacity_class=capacity_class,
            node_pools=tuple(view.read("node_pools") or ()) if elastic else (),
            requests=view.requests(settings.default_requests),
            pool_slots=view.stated_pool_slots,
        )
    except ConfigurationError as error:
        raise MisconfiguredTask(str(error)) from None
    if not elastic:
        remember(view.dag_id, task.task_id, tag)
    if tag.acts and tag.capacity.impossible:
        raise TaskTooWide(tag.capacity.impossible)
    view.write("executor_config", write_carrier(tag.capacity, view.read("executor_config")))
    if tag.airflow_pool and view.stated_pool is None:
        task.pool = tag.airflow_pool
    if tag.pool_slots and view.stated_pool_slots is None:
        task.pool_slots = tag.pool_slots
    if not elastic:  # ours do so themselves when they are made
        _give_time_to_start(view, tag)


def _give_time_to_start(view: _View, tag: Tag) -> None:
    for name in ("startup_timeout_seconds", "schedule_timeout_seconds"):
        stated = view.read(name) or _PROVIDER_TIMEOUT_SECONDS
        if tag.start_timeout_seconds and stated == _PROVIDER_TIMEOUT_SECONDS and view.may_write(name):
            view.write(name, max(_PROVIDER_TIMEOUT_SECONDS, tag.start_timeout_seconds))


class _View:
    """One way to read and write the arguments of plain and mapped tasks."""

    def __init__(self, task: Any, mapped: bool) -> None:
        self.task = task
        self.mapped = mapped
        dag = task.dag
        self.dag_id: str = dag.dag_id if dag else ""
        self.tags: Sequence[str] = tuple(dag.tags) if dag else ()
        self.name = f"{self.dag_id}.{task.task_id}"
        self._defaults: Mapping[str, Any] = (dag.default_args if dag else None) or {}

    def read(self, name: str) -> Any:
        """Return an argument; None where it is not given."""
        if not self.mapped:
            return getattr(self.task, name, None)
        # What default_args say reaches a mapped task's instances only when they are made.
        return self.task.partial_kwargs.get(name, self._defaults.get(name))

    def write(self, name: str, value: Any) -> None:
        """Set an argument."""
        if self.mapped:
            self.task.partial_kwargs[name] = value
        else:
            setattr(self.task, name, value)

    def may_write(self, name: str) -> bool:
        """Tell whether an argument can be given here: one that instances bring themselves must not be given twice."""
        return not self.mapped or (self._mapped_values_are_known and name not in self.mapped_names())

    @property
    def stated_pool(self) -> str | None:
        """The pool that the author chose; None where it is Airflow's default."""
        pool = self.task.pool
        return None if pool == "default_pool" else pool

    @property
    def stated_pool_slots(self) -> int | None:
        """The slots that the author chose; 1 is Airflow's default and taken for no choice."""
        slots = self.task.pool_slots
        return None if slots == 1 else slots

    def operator_names(self, operator_class: type) -> tuple[str, ...]:
        """Return the names that a rule may use for the operator: its own and those of the classes it extends."""
        bases = [each.__name__ for each in operator_class.__mro__ if issubclass(each, KubernetesPodOperator)]
        return (self.task.operator_name, *bases)

    def mapped_names(self) -> tuple[str, ...]:
        """Return the arguments that the task is mapped over, as far as they are known."""
        return tuple({name for values in self._mapped_values() for name in values})

    def requests(self, default: Resources) -> Resources:
        """Return the requests of the task's pod; of the largest one where instances differ."""
        largest = StaticPod.of(self.read).requests(default)
        for values in self._mapped_values():
            largest = larger_of(largest, StaticPod.of(self._instance(values)).requests(default))
        return largest

    def _instance(self, values: Mapping[str, Any]) -> Callable[[str], Any]:
        return lambda name: values.get(name, self.read(name))

    @property
    def _mapped_values_are_known(self) -> bool:
        return isinstance(getattr(self.task.expand_input, "value", None), Mapping | list | tuple)

    def _mapped_values(self) -> Iterator[Mapping[str, Any]]:
        value = getattr(self.task.expand_input, "value", None) if self.mapped else None
        if isinstance(value, Mapping):  # expand(name=[…], …)
            for name, column in value.items():
                yield from ({name: each} for each in (column if isinstance(column, list | tuple) else (None,)))
        elif isinstance(value, list | tuple):  # expand_kwargs([{…}, …])
            yield from (each for each in value if isinstance(each, Mapping))
