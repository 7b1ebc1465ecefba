"""A study: all policies over several boot times, seeds and mixes, on recorded or made-up workflows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from airflow_elastic.model.capacity_class import CapacityClass
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.resources import Resources
from airflow_elastic.model.settings import Mode, ScalingRules, Settings
from airflow_elastic.simulator.compare import Simulated, policies, simulate
from airflow_elastic.simulator.generators import generated_noise, generated_workflows
from airflow_elastic.simulator.mixes import choose_workflows, recurring
from airflow_elastic.simulator.traces import Noise, Recording, read_noise, read_workflows
from airflow_elastic.simulator.workload import Workload
from airflow_elastic.simulator.world import Conditions

__all__ = ["StudyPlan", "run_study", "study_settings", "study_workload"]

_GIB = 2**30
NODE_POOL = "burst"


def study_settings(boot_seconds: float, scaling: ScalingRules | None = None) -> Settings:
    """Return the settings of a study: one pool of nodes of 4 cpu and 16 GiB, one class, all else by default."""
    pool = NodePool(
        name=NODE_POOL,
        selector=(("airflow-elastic.io/node-pool", NODE_POOL),),
        shape=Resources.of(cpu=4000, memory=16 * _GIB, pods=110),
        max_nodes=5000,
        boot_seconds=boot_seconds,
        boot_seconds_p95=2 * boot_seconds,
        provider="scale",
    )
    slot = Resources.of(cpu=1000, memory=2 * _GIB)
    burst = CapacityClass(NODE_POOL, (NODE_POOL,), NODE_POOL, slot, evictable=True)
    return Settings((pool,), (burst,), Mode.MANAGE, scaling=scaling or ScalingRules(), source="the benchmark")


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """What a study covers."""

    traces: Path | None = None
    """Folder of recorded workflows; None: made-up ones."""
    families: tuple[str, ...] = ()
    boots: tuple[float, ...] = (45.0, 90.0, 180.0)
    seeds: tuple[int, ...] = (1, 2, 3)
    mixes: tuple[str, ...] = ("mixed",)
    days_train: float = 7.0
    days_test: float = 7.0
    concurrency: int = 16
    most_tasks: int = 320
    without_heaviest: bool = False
    policies: tuple[str, ...] = ()
    scenarios: bool = False
    tick_seconds: float = 1.0

    @property
    def simulations(self) -> int:
        """Return how many worlds will be run."""
        each = len(policies(self.policies, scenarios=self.scenarios))
        return len(self.boots) * len(self.seeds) * len(self.mixes) * each


def study_workload(study: StudyPlan, recordings: Sequence[Recording], noise: Noise, seed: int, mix: str) -> Workload:
    """Return the workload of one seed and mix."""
    dags = choose_workflows(recordings, seed, study.most_tasks)
    workload = recurring(
        f"{mix}, seed {seed}",
        dags,
        noise,
        seed,
        days_train=study.days_train,
        days_test=study.days_test,
        mix=mix,
        concurrency=study.concurrency,
    )
    return workload.without_heaviest() if study.without_heaviest else workload


def run_study(study: StudyPlan, progress: Callable[[str, float], None] | None = None) -> Iterator[Simulated]:
    """Run everything and yield each world's figures.

    ``progress`` is told a label and the share of the whole study that is done.

    Raises:
        ConfigurationError: traces that do not exist or cannot be read.
        ValueError: no such policy.
    """
    chosen = policies(study.policies, scenarios=study.scenarios)
    total, done = study.simulations, 0
    recordings = read_workflows(study.traces, study.families) if study.traces else None
    noise = read_noise(study.traces) if study.traces else None
    for seed in study.seeds:
        some = recordings if recordings is not None else generated_workflows(seed)
        if recordings is None and study.families:
            some = [each for each in some if each.family in study.families]
        for mix in study.mixes:
            workload = study_workload(study, some, noise or generated_noise(seed), seed, mix)
            for boot in study.boots:
                conditions, settings = Conditions(seed=seed), study_settings(boot)
                prefix = f"boot {boot:g} s, {mix}, seed {seed}"

                tell = _told(progress, prefix, done, total)
                for each in simulate(
                    workload, settings, conditions, chosen, tick_seconds=study.tick_seconds, progress=tell
                ):
                    done += 1
                    yield each


def _told(
    progress: Callable[[str, float], None] | None, prefix: str, done: int, total: int
) -> Callable[[str, float], None] | None:
    """Return what tells the whole study's progress from that of one comparison, which begins when ``done`` are done."""
    if progress is None:
        return None
    tell, seen = progress, dict[str, int]()

    def told(label: str, share: float) -> None:
        finished = done + seen.setdefault(label, len(seen))
        tell(f"{prefix}: {label}", (finished + share) / total)

    return told
