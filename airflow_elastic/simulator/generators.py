"""Workflows made up for where no recorded ones are at hand: pipelines as people write them.

Each shape comes in several sizes. Running times are lognormal around what the step usually takes; the noise from run
to run is lognormal too, with now and then an outlier, much as recorded noise is (a few per cent in most runs, 2–3 ×
in a few).
"""

from __future__ import annotations

import math
from random import Random

from airflow_elastic.simulator.traces import Noise, Recording
from airflow_elastic.simulator.workload import DagTemplate, TaskTemplate

__all__ = ["generated_noise", "generated_workflows"]

_SERIES = 24
_SAMPLES = 2000


def generated_workflows(seed: int) -> list[Recording]:
    """Return workflows of four families: ``chain``, ``fanout``, ``stages`` and ``mapped``."""
    random = Random(f"{seed} workflows")
    found = [_recording("chain", f"chain-{size}", _chain(random, size)) for size in (4, 8, 16)]
    for family, is_mapped in (("fanout", False), ("mapped", True)):
        found += [
            _recording(family, f"{family}-{width}", _fan_out(random, width, is_mapped=is_mapped))
            for width in (12, 40, 120)
        ]
    found += [_recording("stages", f"stages-{width}", _stages(random, width)) for width in (6, 20, 60)]
    return found


def _recording(family: str, name: str, tasks: list[TaskTemplate]) -> Recording:
    return Recording(family, name, DagTemplate(name, tuple(tasks)), 1)


def _length(random: Random, typical: float) -> float:
    return max(typical * math.exp(random.gauss(0.0, 0.5)), 2.0)


def _chain(random: Random, size: int) -> list[TaskTemplate]:
    return [TaskTemplate(f"step_{i}", (i - 1,) if i else (), _length(random, 180.0)) for i in range(size)]


def _fan_out(random: Random, width: int, *, is_mapped: bool) -> list[TaskTemplate]:
    tasks = [TaskTemplate("list", (), _length(random, 30.0))]
    typical = _length(random, 300.0)
    for i in range(width):
        if is_mapped:
            tasks.append(TaskTemplate("work", (0,), typical, map_index=i))
        else:
            tasks.append(TaskTemplate(f"work_{i}", (0,), _length(random, typical)))
    tasks.append(TaskTemplate("merge", tuple(range(1, width + 1)), _length(random, 120.0)))
    return tasks


def _stages(random: Random, width: int) -> list[TaskTemplate]:
    """Return a pipeline of parallel lanes of three steps, a join in the middle and a narrower second half."""
    tasks = [TaskTemplate("extract", (), _length(random, 60.0))]
    ends = []
    for lane in range(width):
        for step, typical in enumerate((45.0, 240.0, 20.0)):
            upstream = (0,) if not step else (len(tasks) - 1,)
            tasks.append(TaskTemplate(f"lane_{lane}_{step}", upstream, _length(random, typical)))
        ends.append(len(tasks) - 1)
    tasks.append(TaskTemplate("join", tuple(ends), _length(random, 90.0)))
    join = len(tasks) - 1
    last = [TaskTemplate(f"publish_{i}", (join,), _length(random, 150.0)) for i in range(max(width // 3, 1))]
    return tasks + last


def generated_noise(seed: int) -> Noise:
    """Return made-up series of relative running times."""
    random = Random(f"{seed} noise")
    series = []
    for _ in range(_SERIES):
        spread, outliers = random.uniform(0.02, 0.15), random.uniform(0.0, 0.05)
        series.append(
            tuple(
                math.exp(random.gauss(0.0, spread)) * (random.uniform(1.5, 3.0) if random.random() < outliers else 1.0)
                for _ in range(_SAMPLES)
            )
        )
    return Noise(tuple(series))
