"""Recorded workflows and recorded noise as recurring DAGs.

Files (see the traces' README): ``workflow_<family>.csv[.gz]``, one row a task (instance, task_id, runtime_s, parents
separated by ``;``), and ``vm_runtime_noise.csv[.gz]`` (series, start, runtime_s).

Decisions:
- Instances whose names differ only in a trailing ``-NNN`` and whose task ids are the same are repeats of one workflow;
  a task's typical time is the median over the repeats.
- A recurring task draws its run-to-run noise from one recorded series divided by the series' median: the samples were
  taken every 40 minutes or so, so the sample moves on with simulated time from an offset of the task's own. Tasks of
  one name (ids and numbers stripped) share the series, each with its own offset. What is slow for days in the record
  (a throttled disk) is slow for days here.
- A pod runs for a second at least.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median

from airflow_elastic.errors import ConfigurationError
from airflow_elastic.simulator.workload import DagTemplate, TaskTemplate, topological

__all__ = ["TRACES_VARIABLE", "Noise", "NoisyDag", "Recording", "read_noise", "read_workflows", "traces_folder"]

TRACES_VARIABLE = "AIRFLOW_ELASTIC_TRACES"
_SHORTEST_SECONDS = 1.0
_NOISE_STEP_SECONDS = 2400.0
_REPEAT = re.compile(r"-\d+$")
_NUMBERS = re.compile(r"(_?ID)?\d+.*$")


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded workflow as a DAG that could recur."""

    family: str
    name: str
    dag: DagTemplate
    repeats: int


@dataclass(frozen=True, slots=True)
class Noise:
    """Recorded relative running times of the same job, by series, in the order of recording."""

    series: tuple[tuple[float, ...], ...]

    def factor(self, series: int, offset: int, at: float) -> float:
        """Return how much longer than typical the job of a series takes at a time (seconds)."""
        if not self.series:
            return 1.0
        values = self.series[series % len(self.series)]
        return values[(offset + int(at // _NOISE_STEP_SECONDS)) % len(values)]


def traces_folder(given: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the folder of traces: the one given, of the environment, beside the repository; None: there is none.

    Raises:
        ConfigurationError: the folder that was given or named by the environment does not exist.
    """
    named = given or os.environ.get(TRACES_VARIABLE)
    if named:
        folder = Path(named)
        if not folder.is_dir():
            raise ConfigurationError(f"the folder of traces {folder} does not exist; name one that does, or none")
        return folder
    beside = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "traces"
    return beside if beside.is_dir() else None


def _rows(path: Path) -> Iterator[dict[str, str]]:
    read = gzip.decompress if path.suffix == ".gz" else bytes
    yield from csv.DictReader(io.StringIO(read(path.read_bytes()).decode("utf-8"), newline=""))


def read_workflows(folder: Path, families: Sequence[str] = ()) -> list[Recording]:
    """Return the recorded workflows of some families (none named: all), sorted by family and name.

    Raises:
        ConfigurationError: no such family, or a file that cannot be read as a trace.
    """
    files = {path.name.split(".")[0].removeprefix("workflow_"): path for path in sorted(folder.glob("workflow_*.csv*"))}
    missing = [name for name in families if name not in files]
    if missing or not files:
        raise ConfigurationError(
            f"no trace of family {', '.join(missing) or '(any)'} in {folder}; it has {', '.join(files) or 'none'}"
        )
    found: list[Recording] = []
    for family in families or files:
        try:
            found.extend(_read_family(family, files[family]))
        except (KeyError, ValueError, OSError) as error:
            raise ConfigurationError(f"{files[family]} cannot be read as a trace of workflows: {error}") from error
    return found


def _read_family(family: str, path: Path) -> list[Recording]:
    instances: dict[str, dict[str, tuple[float, tuple[str, ...]]]] = {}
    for row in _rows(path):
        parents = tuple(each for each in row["parents"].split(";") if each)
        instances.setdefault(row["instance"], {})[row["task_id"]] = (float(row["runtime_s"] or 0.0), parents)
    groups: dict[str, list[str]] = {}
    for name in instances:
        groups.setdefault(_REPEAT.sub("", name), []).append(name)
    recordings = []
    for base, names in sorted(groups.items()):
        first = instances[names[0]]
        same = [instances[name] for name in names if instances[name].keys() == first.keys()]
        recordings.append(Recording(family, base, _dag(base, first, same), len(same)))
    return recordings


def _dag(
    name: str,
    tasks: dict[str, tuple[float, tuple[str, ...]]],
    repeats: Sequence[dict[str, tuple[float, tuple[str, ...]]]],
) -> DagTemplate:
    ids = list(tasks)
    index = {task_id: i for i, task_id in enumerate(ids)}
    upstream = [[index[up] for up in tasks[task_id][1] if up in index and up != task_id] for task_id in ids]
    order = topological(upstream)
    place = {old: new for new, old in enumerate(order)}
    return DagTemplate(
        name,
        tuple(
            TaskTemplate(
                ids[old],
                tuple(sorted({place[up] for up in upstream[old]})),
                max(median(each[ids[old]][0] for each in repeats), _SHORTEST_SECONDS),
            )
            for old in order
        ),
    )


def read_noise(folder: Path) -> Noise:
    """Return the recorded noise; without a file for it there is none."""
    path = next((folder / name for name in ("vm_runtime_noise.csv.gz", "vm_runtime_noise.csv")
                 if (folder / name).is_file()), None)  # fmt: skip
    series: dict[str, list[float]] = {}
    for row in _rows(path) if path else ():
        series.setdefault(row["series"], []).append(float(row["runtime_s"]))
    relative = []
    for values in series.values():
        middle = median(values)
        if middle > 0:
            relative.append(tuple(value / middle for value in values))
    return Noise(tuple(relative))


class NoisyDag:
    """A DAG whose tasks take what the record says that the same job takes from run to run."""

    def __init__(self, dag: DagTemplate, noise: Noise, seed: int) -> None:
        self.dag = dag
        self._noise = noise
        self._sources = [self._source(task.task_id, seed) for task in dag.tasks]

    def seconds(self, at: float) -> tuple[float, ...]:
        """Return the true running time of every task of a run that starts at ``at``."""
        factor = self._noise.factor
        return tuple(
            max(task.seconds * factor(series, offset, at), _SHORTEST_SECONDS)
            for task, (series, offset) in zip(self.dag.tasks, self._sources, strict=True)
        )

    def _source(self, task_id: str, seed: int) -> tuple[int, int]:
        kind = Random(f"{seed} {self.dag.dag_id} {_NUMBERS.sub('', task_id)}")
        own = Random(f"{seed} {self.dag.dag_id} {task_id}")
        series = kind.randrange(max(len(self._noise.series), 1))
        return series, own.randrange(len(self._noise.series[series]) if self._noise.series else 1)
