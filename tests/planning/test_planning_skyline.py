from __future__ import annotations

import math

import pytest
from planning_worlds import SETTINGS, active, dag, duration, pod, task

from airflow_elastic.model.demand import TaskInstance, TaskState
from airflow_elastic.model.snapshot import PodPhase
from airflow_elastic.planning.outcome import Outcome, Wait, judge
from airflow_elastic.planning.progress import run_progress
from airflow_elastic.planning.quantiles import boot_quantile, early_factor, longest_of, remaining, sane
from airflow_elastic.planning.shapes import shape_facts
from airflow_elastic.planning.skyline import GroupKind, Progress, Skyline, early, late, project

S, F, K = Outcome.SUCCESS, Outcome.FAILED, Outcome.SKIPPED


def spans(shape, skyline: Skyline) -> dict[str, tuple[float, float]]:
    return {shape.tasks[g.spec].task_id: (g.start.at, g.end.at) for g in skyline.groups}


def of_run(run, pods=(), now=1000.0) -> Skyline:
    instances: dict[str, list[TaskInstance]] = {}
    for each in run.tasks:
        instances.setdefault(each.task_id, []).append(each)
    progress, _ = run_progress(run.shape, instances, list(pods), now)
    return project(run.shape, now, progress)


def test_a_chain_starts_each_task_when_the_one_before_has_ended():
    shape = dag("d", task("a", seconds=10), task("b", ["a"], 20), task("c", ["b"], 30))
    skyline = project(shape, 100.0)
    assert spans(shape, skyline) == {"a": (100, 110), "b": (110, 130), "c": (130, 160)}
    assert skyline.ends_at == skyline.last_need_at == 160


def test_a_join_waits_for_the_last_upstream():
    shape = dag("d", task("a", seconds=10), task("b", seconds=50), task("c", ["a", "b"], 5))
    assert spans(shape, project(shape, 0.0))["c"] == (50, 55)


def test_tasks_without_a_node_take_time_but_no_node():
    shape = dag("d", task("sensor", seconds=40, node=False), task("b", ["sensor"], 5))
    skyline = project(shape, 0.0)
    assert spans(shape, skyline) == {"b": (40, 45)}


def test_spread_adds_up_along_the_path_as_independent_errors_do():
    shape = dag("d", task("a", seconds=100, q10=70, q90=180), task("b", ["a"], 100, q10=60, q90=160), task("c", ["b"]))
    group = project(shape, 0.0).groups[2]
    assert early(group.start, 1.0, 0.0) == pytest.approx(200 - math.hypot(30, 40))
    assert late(group.start) == pytest.approx(200 + math.hypot(80, 60))
    assert early(group.start, 100.0, 150.0) == 150.0


@pytest.mark.parametrize(
    ("rule", "upstream", "outcome", "wait"),
    [
        ("all_success", [S, S], None, Wait.LAST),
        ("all_success", [S, F], F, Wait.LAST),
        ("all_success", [S, K], K, Wait.LAST),
        ("none_failed", [S, K], None, Wait.LAST),
        ("none_failed", [K, F], F, Wait.LAST),
        ("none_failed_min_one_success", [K, K], K, Wait.LAST),
        ("none_failed_min_one_success", [K, S], None, Wait.LAST),
        ("none_skipped", [S, F], None, Wait.LAST),
        ("none_skipped", [S, K], K, Wait.LAST),
        ("all_done", [F, K], None, Wait.LAST),
        ("all_done_setup_success", [S, F], None, Wait.LAST),
        ("all_done_min_one_success", [F, K], F, Wait.LAST),
        ("all_failed", [F, F], None, Wait.LAST),
        ("all_failed", [F, S], K, Wait.LAST),
        ("all_skipped", [K, K], None, Wait.LAST),
        ("all_skipped", [K, S], K, Wait.LAST),
        ("one_success", [F, S], None, Wait.FIRST_SUCCESS),
        ("one_success", [F, F], F, Wait.LAST),
        ("one_failed", [S, S], K, Wait.LAST),
        ("one_failed", [S, F], None, Wait.FIRST_FAILURE),
        ("one_done", [S, K], None, Wait.FIRST),
        ("always", [F, F], None, Wait.NONE),
        ("all_success", [], None, Wait.NONE),
    ],
)
def test_trigger_rules(rule, upstream, outcome, wait):
    assert judge(rule, upstream) == (outcome, wait)


def test_one_success_starts_with_the_earliest_upstream():
    shape = dag("d", task("a", seconds=10), task("b", seconds=50), task("c", ["a", "b"], 5, trigger_rule="one_success"))
    assert spans(shape, project(shape, 0.0))["c"] == (10, 15)


def test_what_waits_for_a_failure_is_not_expected_to_run_and_neither_is_what_follows_it():
    shape = dag("d", task("a"), task("alarm", ["a"], trigger_rule="one_failed"), task("after", ["alarm"]))
    assert set(spans(shape, project(shape, 0.0))) == {"a"}


def test_a_failed_upstream_takes_its_downstream_out_but_not_the_other_branch():
    shape = dag("d", task("a"), task("b"), task("c", ["a"]), task("d", ["c"]), task("e", ["b"]), task("f", ["d", "e"]))
    run = active(shape, {"a": TaskState.FAILED, "b": TaskState.SUCCESS, "c": TaskState.UPSTREAM_FAILED})
    assert set(spans(shape, of_run(run))) == {"e"}


def test_all_done_runs_after_a_failure():
    shape = dag("d", task("a"), task("clean", ["a"], trigger_rule="all_done"))
    assert set(spans(shape, of_run(active(shape, {"a": TaskState.FAILED})))) == {"clean"}


def test_finished_tasks_are_out_and_retries_count_as_ready():
    shape = dag("d", task("a"), task("b", ["a"], 30), task("c", ["a"], 10), task("d", ["b", "c"], 5))
    states = {"a": TaskState.SUCCESS, "b": TaskState.UP_FOR_RETRY, "c": TaskState.SUCCESS}
    run = active(shape, states)
    assert spans(shape, of_run(run)) == {"b": (1000, 1030), "d": (1030, 1035)}
    assert of_run(run).groups[0].kind is GroupKind.READY


def test_a_running_task_counts_from_its_pod_s_start():
    shape = dag("d", task("a", seconds=100), task("b", ["a"], 10))
    run = active(shape, {"a": TaskState.DEFERRED})
    begun = pod("p", "n1", ("d", "run", "a"), started=960.0)
    assert spans(shape, of_run(run, [begun])) == {"a": (1000, 1060), "b": (1060, 1070)}


def test_a_pod_that_has_ended_wants_no_node_while_its_task_waits_for_a_worker():
    shape = dag("d", task("a", seconds=100), task("b", ["a"], 10))
    ended = pod("p", "n1", ("d", "run", "a"), phase=PodPhase.SUCCEEDED)
    skyline = of_run(active(shape, {"a": TaskState.DEFERRED}), [ended])
    assert spans(shape, skyline) == {"b": (1005, 1015)}


def test_a_resumed_task_wants_no_node_unless_its_pod_lives():
    shape = dag("d", task("a", seconds=100))
    resumed = (TaskInstance("a", state=TaskState.SCHEDULED, resumes=True),)
    assert not of_run(active(shape, {"a": resumed})).groups
    alive = of_run(active(shape, {"a": resumed}), [pod("p", "n1", ("d", "run", "a"), started=950.0)])
    assert [group.kind for group in alive.groups] == [GroupKind.RUNNING]


def test_an_ended_pod_of_an_earlier_try_does_not_hide_the_new_one_s_demand():
    shape = dag("d", task("a", seconds=100))
    again = (TaskInstance("a", state=TaskState.RUNNING, try_number=2, started_at=990.0),)
    old = pod("p", "n1", ("d", "run", "a"), phase=PodPhase.FAILED, created_at=500.0)
    assert [group.count for group in of_run(active(shape, {"a": again}), [old]).groups] == [1]


def test_mapped_tasks_count_their_expected_width_until_they_are_expanded_and_then_what_is_there():
    shape = dag("d", task("a", seconds=10), task("m", ["a"], 20, is_mapped=True, mapped_width=7))
    assert [g.count for g in project(shape, 0.0).groups] == [1, 7]
    unexpanded = active(shape, {"a": TaskState.RUNNING, "m": TaskState.NONE})
    assert [g.count for g in of_run(unexpanded).groups] == [1, 7]
    states = (TaskState.SUCCESS, TaskState.RUNNING, TaskState.QUEUED)
    known = tuple(TaskInstance("m", i, state) for i, state in enumerate(states))
    expanded = active(shape, {"a": TaskState.SUCCESS, "m": known})
    groups = of_run(expanded).groups
    assert [(g.kind, g.count, g.map_index) for g in groups] == [(GroupKind.RUNNING, 1, 1), (GroupKind.READY, 1, None)]


def test_max_active_tasks_lets_waves_follow_each_other_where_tasks_hold_a_worker():
    wide = task("w", seconds=10, is_mapped=True, mapped_width=5, holds_worker=True)
    shape = dag("d", wide, max_active_tasks=2)
    assert [(g.start.at, g.count) for g in project(shape, 0.0).groups] == [(0, 2), (10, 2), (20, 1)]
    ready = Progress(ready=5)
    kinds = [g.kind for g in project(shape, 0.0, [ready]).groups]
    assert kinds == [GroupKind.READY, GroupKind.LATER, GroupKind.LATER]


def test_deferred_tasks_are_not_held_back_by_max_active_tasks():
    shape = dag("d", task("w", seconds=10, is_mapped=True, mapped_width=5), max_active_tasks=2)
    assert [(g.start.at, g.count) for g in project(shape, 0.0).groups] == [(0, 5)]


def test_running_tasks_take_part_of_max_active_tasks():
    tasks = [task(f"t{i}", seconds=10, holds_worker=True) for i in range(3)]
    shape = dag("d", *tasks, max_active_tasks=2)
    run = active(shape, {"t0": TaskState.RUNNING, "t1": TaskState.RUNNING, "t2": TaskState.SCHEDULED})
    assert spans(shape, of_run(run))["t2"] == (1010, 1020)


def test_upstream_names_that_do_not_exist_and_loops_on_itself_do_no_harm():
    shape = dag("d", task("a", ["ghost", "a"], 10))
    assert spans(shape, project(shape, 0.0)) == {"a": (0, 10)}


def test_remaining_time_follows_what_has_gone():
    quantiles = (50.0, 100.0, 200.0)
    assert remaining(quantiles, 0.0) == quantiles
    low, middle, high = remaining(quantiles, 100.0)
    assert 0 < low < middle < high
    assert middle == pytest.approx(62.5)  # share 0.75 lies at 162.5 s
    overdue = remaining(quantiles, 1000.0)
    assert overdue[1] > remaining(quantiles, 250.0)[1]  # the longer it is overdue, the longer it is expected to go on
    low, middle, high = remaining((60.0, 60.0, 60.0), 45.0)
    assert (low, middle) == pytest.approx((15.0, 15.0))
    assert 15.0 <= high < 16.0


def test_the_longest_of_many_takes_longer():
    quantiles = (50.0, 100.0, 200.0)
    assert longest_of(quantiles, 1) == quantiles
    ten, hundred = longest_of(quantiles, 10), longest_of(quantiles, 100)
    assert quantiles[1] < ten[1] < hundred[1]
    assert ten[0] < ten[1] < ten[2]


def test_the_price_of_waiting_chooses_the_quantiles():
    assert early_factor(0.1) == pytest.approx(1.0)
    assert early_factor(0.5) == pytest.approx(0.0)
    assert early_factor(0.0) == 2.0
    assert boot_quantile(duration(100, 80, 160), 0.1) == pytest.approx(160)
    assert boot_quantile(duration(100, 80, 160), 0.5) == pytest.approx(100)


@pytest.mark.parametrize("bad", [(float("nan"), 5.0, float("inf")), (9.0, 5.0, 1.0), (-1.0, -1.0, 1e18)])
def test_hostile_estimates_become_sane_ones(bad):
    low, middle, high = sane(duration(bad[1], bad[0], bad[2]))
    assert 0 < low <= middle <= high <= 30 * 86400


def test_facts_of_a_shape_are_made_once_for_the_same_objects_and_anew_for_other_settings():
    shape = dag("d", task("a"), task("b", capacity_class="nobody"))
    facts = shape_facts(shape, SETTINGS)
    assert shape_facts(shape, SETTINGS) is facts
    assert facts.unknown_class == (("b", "nobody"),)
    other = type(SETTINGS)(SETTINGS.node_pools, SETTINGS.classes[:1])
    assert shape_facts(shape, other).unknown_class == (("a", "burst"), ("b", "nobody"))
