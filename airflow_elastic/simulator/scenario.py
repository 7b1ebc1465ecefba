"""Scenarios: forecasts made wrong on purpose, and a cloud that misbehaves."""

from __future__ import annotations

from dataclasses import dataclass, replace

from airflow_elastic.simulator.cluster import PoolTruth
from airflow_elastic.simulator.distortion import DISTORTIONS, TRUE_FORECAST, Distortion
from airflow_elastic.simulator.workload import DAY

__all__ = ["CLOUD_SCENARIOS", "FORECAST_SCENARIOS", "Scenario", "scenario_by_name"]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One deviation from the plain world."""

    name: str
    distortion: Distortion = TRUE_FORECAST
    reclaim_mean_seconds: float = 0.0
    """Mean life of a machine before its cloud takes it back."""
    stock_out_seconds: float = 0.0
    """Length of one stock-out a day, beginning at 06:00 UTC."""

    def truth(self, truth: PoolTruth, begin: float, end: float) -> PoolTruth:
        """Return how a pool behaves under this scenario between two times."""
        if self.reclaim_mean_seconds:
            truth = replace(truth, reclaim_mean_seconds=self.reclaim_mean_seconds)
        if self.stock_out_seconds:
            first = begin // DAY * DAY + 6 * 3600.0
            days = int((end - first) // DAY) + 1
            windows = tuple((first + i * DAY, first + i * DAY + self.stock_out_seconds) for i in range(days))
            truth = replace(truth, stock_outs=windows)
        return truth


FORECAST_SCENARIOS = tuple(Scenario(f"forecast {each.name}", each) for each in DISTORTIONS)
CLOUD_SCENARIOS = (
    Scenario("spot reclaims", reclaim_mean_seconds=4 * 3600.0),
    Scenario("stock-outs", stock_out_seconds=1800.0),
)


def scenario_by_name(name: str) -> Scenario:
    """Return a scenario; the empty name is the plain world.

    Raises:
        ValueError: there is none of that name.
    """
    known = {"": Scenario(""), **{each.name: each for each in (*FORECAST_SCENARIOS, *CLOUD_SCENARIOS)}}
    if name not in known:
        raise ValueError(f"no scenario {name!r}; there are {', '.join(each for each in known if each)}")
    return known[name]
