"""How far an active run is: its task instances matched with their pods."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from airflow_elastic.model.demand import DagShape, TaskInstance
from airflow_elastic.model.snapshot import Pod
from airflow_elastic.planning.pools import is_live
from airflow_elastic.planning.skyline import PodState, Progress, progress_of

__all__ = ["run_progress"]

_CLOCK_SLACK_SECONDS = 5.0


def run_progress(
    shape: DagShape, instances: Mapping[str, Sequence[TaskInstance]], pods: Sequence[Pod], now: float
) -> tuple[list[Progress], dict[tuple[str, int], list[Pod]]]:
    """Return the progress of each task of ``shape`` and the live pods by (task id, map index).

    A live pod whose task instance has ended is not among them: nobody waits for it.
    """
    by_instance: dict[tuple[str, int], list[Pod]] = defaultdict(list)
    for pod in pods:
        if pod.owner is not None:
            by_instance[pod.owner.task_id, pod.owner.map_index].append(pod)
    live: dict[tuple[str, int], list[Pod]] = {}
    progress: list[Progress] = []
    for spec in shape.tasks:
        own = instances.get(spec.task_id, ())
        states: dict[int, PodState] = {}
        for instance in own:
            if instance.state.is_finished:
                continue
            key = (spec.task_id, instance.map_index)
            some = by_instance.get(key, ())
            standing = [pod for pod in some if is_live(pod)]
            if standing:
                live[key] = standing
                begun = [pod.started_at for pod in standing if pod.started_at is not None]
                states[instance.map_index] = PodState(True, max(now - min(begun), 0.0) if begun else 0.0)
            elif any(pod.phase.is_finished and _is_of_this_try(pod, instance) for pod in some):
                states[instance.map_index] = PodState(False)
            elif not spec.needs_node and instance.state.is_started and instance.started_at is not None:
                states[instance.map_index] = PodState(True, max(now - instance.started_at, 0.0))
        progress.append(progress_of(spec, own, states))
    return progress, live


def _is_of_this_try(pod: Pod, instance: TaskInstance) -> bool:
    """Tell whether an ended pod belongs to the instance's present try rather than to an earlier one."""
    if not instance.state.is_started:
        return False
    return instance.started_at is None or pod.created_at >= instance.started_at - _CLOCK_SLACK_SECONDS
