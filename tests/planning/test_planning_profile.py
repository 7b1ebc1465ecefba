from __future__ import annotations

import json
from dataclasses import replace

import pytest
from planning_worlds import ELASTIC

from airflow_elastic.model.demand import DurationEstimate
from airflow_elastic.planning import profile
from airflow_elastic.planning.profile import Profiles


def seen(profiles: Profiles, seconds: list[float], dag_id: str = "d", task_id: str = "a", name: str = "burst") -> None:
    for i, each in enumerate(seconds):
        profiles.observe(dag_id, task_id, name, each, 1000.0 + i)


def test_a_new_installation_has_the_default():
    estimate = Profiles.empty(300.0).estimate("d", "a", "burst")
    assert (estimate.q50_seconds, estimate.samples) == (300.0, 0)
    assert estimate.q10_seconds < 300.0 < estimate.q90_seconds


def test_its_own_observations_stand_alone_once_there_are_enough():
    profiles = Profiles.empty(300.0)
    seen(profiles, [10.0] * 5)
    assert profiles.estimate("d", "a", "burst") == DurationEstimate(10.0, 10.0, 10.0, 5)


def test_few_observations_take_their_spread_from_what_lies_behind():
    profiles = Profiles.empty(300.0)
    seen(profiles, [10.0])
    estimate = profiles.estimate("d", "a", "burst")
    assert estimate.samples == 1
    assert estimate.q50_seconds == pytest.approx(10.0, rel=0.3)
    assert estimate.q10_seconds < 10.0 < estimate.q90_seconds < 30.0


def test_priors_go_from_the_dag_to_the_installation_to_the_default():
    profiles = Profiles.empty(300.0)
    seen(profiles, [40.0] * 5, dag_id="other")
    assert profiles.estimate("d", "a", "burst").q50_seconds == 40.0
    seen(profiles, [7.0] * 5, task_id="b")
    estimate = profiles.estimate("d", "a", "burst")
    assert (estimate.q50_seconds, estimate.samples) == (7.0, 0)


def test_history_without_a_class_counts_for_every_class_until_there_is_better():
    profiles = Profiles.empty(300.0)
    assert profiles.estimate("d", "a", "burst").samples == 0
    seen(profiles, [20.0] * 6, name="")
    assert profiles.estimate("d", "a", "burst") == DurationEstimate(20.0, 20.0, 20.0, 6)
    seen(profiles, [5.0] * 5)
    assert profiles.estimate("d", "a", "burst").q50_seconds == 5.0


def test_the_newest_weigh_most():
    profiles = Profiles.empty(300.0)
    seen(profiles, [100.0] * 30 + [10.0] * 20)
    estimate = profiles.estimate("d", "a", "burst")
    assert estimate.q50_seconds == 10.0
    assert estimate.q90_seconds == 100.0


def test_quantiles_lie_between_the_observations():
    profiles = Profiles.empty(300.0)
    seen(profiles, [float(i) for i in range(1, 51)])
    estimate = profiles.estimate("d", "a", "burst")
    assert estimate.samples == profile.MOST_SAMPLES
    assert 1.0 <= estimate.q10_seconds < estimate.q50_seconds < estimate.q90_seconds <= 50.0


def test_the_same_estimate_is_the_same_object_until_something_is_learnt():
    profiles = Profiles.empty(300.0)
    seen(profiles, [10.0] * 6)
    first = profiles.estimate("d", "a", "burst")
    assert profiles.estimate("d", "a", "burst") is first
    profiles.observe("d", "a", "burst", 50.0, 2000.0)
    assert profiles.estimate("d", "a", "burst") != first


def test_an_observation_told_twice_counts_once():
    profiles = Profiles.empty(300.0)
    profiles.observe("d", "a", "burst", 10.0, 1000.0)
    profiles.observe("d", "a", "burst", 10.0, 1000.0)
    assert profiles.estimate("d", "a", "burst").samples == 1


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1.0, 1e12])
def test_what_cannot_be_a_duration_is_left_out(bad):
    profiles = Profiles.empty(300.0)
    profiles.observe("d", "a", "burst", bad, 1000.0)
    profiles.observe_boot("elastic", bad)
    assert profiles.estimate("d", "a", "burst").samples == 0
    assert profiles.boot_estimate("elastic", ELASTIC).samples == 0


def test_boot_times_start_from_the_capacity_file_and_follow_what_is_seen():
    profiles = Profiles.empty(300.0)
    prior = profiles.boot_estimate("elastic", replace(ELASTIC, boot_seconds=100.0, boot_seconds_p95=200.0))
    assert (prior.q50_seconds, prior.q90_seconds, prior.samples) == (100.0, 178.0, 0)
    for _ in range(6):
        profiles.observe_boot("elastic", 45.0)
    assert profiles.boot_estimate("elastic", ELASTIC) == DurationEstimate(45.0, 45.0, 45.0, 6)


def test_widths_are_the_median_of_the_latest():
    profiles = Profiles.empty(300.0)
    assert profiles.width("d", "m") == 1
    for width in (1000, *[8] * 4, *[20] * 6):
        profiles.observe_width("d", "m", width)
    assert profiles.width("d", "m") == 20
    profiles.observe_width("d", "m", -5)
    assert profiles.width("d", "m") == 20


def test_it_survives_being_stored():
    profiles = Profiles.empty(120.0)
    seen(profiles, [10.0, 12.5, 9.0, 30.0])
    profiles.observe_boot("elastic", 33.3)
    profiles.observe_width("d", "m", 4)
    again = Profiles.from_json(json.loads(json.dumps(profiles.to_json())))
    assert again.to_json() == profiles.to_json()
    assert again.estimate("d", "a", "burst") == profiles.estimate("d", "a", "burst")
    assert again.boot_estimate("elastic", ELASTIC) == profiles.boot_estimate("elastic", ELASTIC)
    assert again.width("d", "m") == 4


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"tasks": 5, "dags": [], "all": "x", "boots": None, "widths": {"a": 1}},
        {"tasks": [["d", "a"], ["d", "a", "burst", "x", ["y", None, 7]], 3], "widths": [["d", "m", [2, "x"]]]},
        {"default_seconds": float("nan"), "dags": {"d": [1, float("inf")]}},
    ],
)
def test_a_broken_document_gives_what_can_be_read_of_it(broken):
    profiles = Profiles.from_json(broken)
    assert profiles.estimate("d", "a", "burst").q50_seconds > 0
    assert profiles.width("d", "m") in (1, 2)


def test_its_size_is_bounded(monkeypatch):
    monkeypatch.setattr(profile, "MOST_KEYS", 20)
    profiles = Profiles.empty(300.0)
    for i in range(100):
        profiles.observe("d", f"t{i}", "burst", 10.0, float(i))
    stored = profiles.to_json()["tasks"]
    assert len(stored) <= 20
    assert ["d", "t99", "burst"] in [entry[:3] for entry in stored]
