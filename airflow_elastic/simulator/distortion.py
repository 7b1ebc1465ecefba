"""Forecasts made wrong on purpose, to see what a policy does then."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from airflow_elastic.model.demand import DurationEstimate
from airflow_elastic.simulator.workload import PlannedRun

__all__ = ["DISTORTIONS", "TRUE_FORECAST", "Distortion"]


@dataclass(frozen=True, slots=True)
class Distortion:
    """What the planner is told instead of the truth: about starts of coming runs and about lengths of tasks."""

    name: str
    shift_seconds: float = 0.0
    """Coming runs are announced this much later than they start."""
    scale: float = 1.0
    """All running times are announced this many times as long."""
    is_random: bool = False
    """Starts are announced within an hour of the truth, lengths within a factor of four, at random."""

    def start(self, planned: PlannedRun, not_before: float, seed: int) -> float:
        """Return when a coming run is announced to start."""
        if not self.is_random:
            return planned.starts_at + self.shift_seconds
        random = Random(f"{seed} {planned.dag.dag_id} {planned.run_id}")
        return max(planned.starts_at + random.uniform(-3600.0, 3600.0), not_before)

    def duration(self, estimate: DurationEstimate, task_id: str) -> DurationEstimate:
        """Return what is announced as a task's length."""
        factor = self.scale
        if self.is_random:
            factor = 4.0 ** Random(f"length {task_id}").uniform(-1.0, 1.0)
        if factor == 1.0:
            return estimate
        return DurationEstimate(
            estimate.q10_seconds * factor, estimate.q50_seconds * factor, estimate.q90_seconds * factor,
            estimate.samples,
        )  # fmt: skip


TRUE_FORECAST = Distortion("true")
DISTORTIONS = (
    Distortion("shifted 30 min", shift_seconds=1800.0),
    Distortion("scaled × 3", scale=3.0),
    Distortion("random", is_random=True),
)
