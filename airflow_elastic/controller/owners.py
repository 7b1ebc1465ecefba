"""Pods of plain KubernetesPodOperator name their run by a label, in which a run id does not fit: found again here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from airflow_elastic.kubernetes.cluster import FinishedPod
from airflow_elastic.model.demand import Run, TaskKey
from airflow_elastic.model.snapshot import Pod

__all__ = ["OwnerResolver"]

# A scheduled run's id holds colons and never looks like this: such an owner is exact as it is.
_LABEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def _airflow_label(value: str) -> str:
    from airflow.providers.cncf.kubernetes.pod_generator import make_safe_label_value

    return str(make_safe_label_value(value))


@dataclass(slots=True)
class OwnerResolver:
    """Turns owners made from labels into the runs' own ids, where such a run is known."""

    label_of: Callable[[str], str] = _airflow_label
    _known: frozenset[tuple[str, str]] = frozenset()
    _labels: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)

    def pods(self, pods: tuple[Pod, ...], runs: Iterable[Run]) -> tuple[Pod, ...]:
        """Return the pods with their owners' run ids as Airflow has them."""
        known = frozenset((run.dag_id, run.run_id) for run in runs)
        if not any(_is_unknown(pod, known) for pod in pods):
            return pods
        if known != self._known:
            self._known = known
            self._labels = {
                (self.label_of(dag_id), self.label_of(run_id)): (dag_id, run_id) for dag_id, run_id in known
            }
        return tuple(self._resolved(pod, known) for pod in pods)

    def finished(self, pods: Iterable[FinishedPod], runs: Iterable[Run]) -> list[FinishedPod]:
        """Return finished pods likewise; of a run that is over the DAG and task are right all the same."""
        finished = list(pods)
        found = self.pods(tuple(each.pod for each in finished), runs)
        return [replace(each, pod=pod) for each, pod in zip(finished, found, strict=True)]

    def _resolved(self, pod: Pod, known: frozenset[tuple[str, str]]) -> Pod:
        owner = pod.owner
        if owner is None or not _is_unknown(pod, known):
            return pod
        # The DAG's id stands in a label too; one that fits is the same there.
        found = self._labels.get((owner.dag_id, owner.run_id))
        if found is None:
            return pod
        return replace(pod, owner=TaskKey(*found, owner.task_id, owner.map_index))


def _is_unknown(pod: Pod, known: frozenset[tuple[str, str]]) -> bool:
    owner = pod.owner
    return (
        owner is not None and (owner.dag_id, owner.run_id) not in known and _LABEL.fullmatch(owner.run_id) is not None
    )
