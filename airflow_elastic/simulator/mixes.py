"""From workflows to a workload: which of them recur, how often, and when.

Decisions:
- A mix takes about twelve workflows, the same number of each family, spread over their sizes by the seed; workflows of
  more than ``most_tasks`` tasks are left out unless asked for, because a single one would be most of the work.
- Periods: ``mixed`` 24, 12, 6, 8, 24 and 4 hours in turn (about 30 runs a day), ``sparse`` once a day each, ``dense``
  every hour or two. Half of the DAGs start at the top of their hour, as people write schedules, the others anywhere.
- A run has at most ``concurrency`` tasks at work, 16 by default: Airflow's own ``max_active_tasks_per_dag``. 0 stands
  for deferrable tasks without a limit, whose fan-outs want all their nodes at one moment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from airflow_elastic.errors import ConfigurationError
from airflow_elastic.simulator.traces import Noise, NoisyDag, Recording
from airflow_elastic.simulator.workload import DAY, EPOCH, DagTemplate, PlannedRun, Workload

__all__ = ["MIXES", "choose_workflows", "recurring"]

MIXES: dict[str, tuple[float, ...]] = {
    "mixed": (24.0, 12.0, 6.0, 8.0, 24.0, 4.0),
    "sparse": (24.0,),
    "dense": (1.0, 2.0, 1.0, 4.0),
}
_WORKFLOWS = 12


def choose_workflows(recordings: Sequence[Recording], seed: int, most_tasks: int = 320) -> list[DagTemplate]:
    """Return the DAGs of a mix: about twelve, the families in equal parts, each spread over its sizes.

    Raises:
        ConfigurationError: every workflow is larger than ``most_tasks``.
    """
    random = Random(seed)
    families: dict[str, list[Recording]] = {}
    for each in recordings:
        if len(each.dag.tasks) <= most_tasks:
            families.setdefault(each.family, []).append(each)
    if not families:
        raise ConfigurationError(f"no workflow has {most_tasks} tasks or fewer; allow larger ones")
    chosen: list[DagTemplate] = []
    for position, family in enumerate(sorted(families)):
        count = _WORKFLOWS // len(families) + (position < _WORKFLOWS % len(families))
        by_size = sorted(families[family], key=lambda each: (each.dag.work_seconds, each.name))
        for part in range(min(count, len(by_size))):
            low, high = part * len(by_size) // count, (part + 1) * len(by_size) // count
            some = by_size[low:high] or by_size[low : low + 1]
            if some:
                chosen.append(random.choice(some).dag)
    return list(dict.fromkeys(chosen))


def recurring(
    name: str,
    dags: Sequence[DagTemplate],
    noise: Noise,
    seed: int,
    *,
    days_train: float = 7.0,
    days_test: float = 7.0,
    mix: str = "mixed",
    concurrency: int = 16,
) -> Workload:
    """Return a workload in which the DAGs recur: first the days to learn from, then those to measure."""
    random = Random(f"{seed} {mix}")
    periods = MIXES[mix]
    starts_at = EPOCH + days_train * DAY
    ends_at = starts_at + days_test * DAY
    training: list[PlannedRun] = []
    test: list[PlannedRun] = []
    shift = random.randrange(len(periods))
    for i, plain in enumerate(dags):
        hours = periods[(i + shift) % len(periods)]
        minute = 0 if random.random() < 0.5 else random.randrange(1, 60)
        offset = random.randrange(int(hours)) * 3600.0 + minute * 60.0
        dag = replace(plain, schedule=f"every {hours:.0f} h", max_active_tasks=concurrency)
        seconds_at = NoisyDag(dag, noise, seed).seconds
        for run in _runs(dag, EPOCH + offset, hours * 3600.0, ends_at, seconds_at):
            (test if run.starts_at >= starts_at else training).append(run)
    return Workload(name, _by_start(training), _by_start(test), starts_at, ends_at)


def _runs(
    dag: DagTemplate, first: float, period: float, until: float, seconds_at: Callable[[float], tuple[float, ...]]
) -> list[PlannedRun]:
    count = int(max(until - first, 0.0) // period) + 1
    starts = [first + k * period for k in range(count) if first + k * period < until]
    return [PlannedRun(dag, f"scheduled__{at:.0f}", at, seconds_at(at)) for at in starts]


def _by_start(runs: list[PlannedRun]) -> tuple[PlannedRun, ...]:
    return tuple(sorted(runs, key=lambda run: (run.starts_at, run.dag.dag_id)))
