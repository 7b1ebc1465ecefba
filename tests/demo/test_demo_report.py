"""The reporter against event logs made by hand: every figure is worked out on paper."""

from __future__ import annotations

import ast
import math
from pathlib import Path

import pytest

import airflow_elastic.demo
from airflow_elastic.demo.cluster_history import ClusterHistory, EventLogTail
from airflow_elastic.demo.measurement import MeasuredClass, Measurement, RunRow, TaskRow, classes_of, minimum_nodes
from airflow_elastic.demo.report import figures, percentile, usable_slots, usable_slots_at
from airflow_elastic.demo.steps import Steps, integral
from airflow_elastic.model.labels import (
    ANNOTATION_DAG_ID,
    ANNOTATION_MAP_INDEX,
    ANNOTATION_RUN_ID,
    ANNOTATION_TASK_ID,
    LABEL_PLACEHOLDER,
)

GIB = 2**30
ALLOCATABLE = {"cpu": 4000, "memory": 8 * GIB, "pods": 20}
BURST = MeasuredClass("burst", "burst", ("elastic",), {"cpu": 1000, "memory": 2 * GIB})
KEYS = [
    "runs",
    "tasks",
    "failed_tasks",
    "cold_tasks",
    "first_task_wait_seconds_p95",
    "node_seconds",
    "node_seconds_explained",
    "phantom_slot_seconds",
    "slots_end",
    "nodes_end",
    "placeholders_end",
    "prewarmed_runs",
]


def node(t: float, kind: str, name: str = "e1", pool: str = "elastic") -> dict[str, object]:
    return {"t": t, "kind": f"node_{kind}", "node": name, "pool": pool, "allocatable": ALLOCATABLE}


def pod(t: float, kind: str, name: str, **more: object) -> dict[str, object]:
    return {"t": t, "kind": f"pod_{kind}", "pod": name, **more}


def task_annotations(task: str, run: str = "r1", dag: str = "d", index: int = -1) -> dict[str, str]:
    return {
        ANNOTATION_DAG_ID: dag,
        ANNOTATION_RUN_ID: run,
        ANNOTATION_TASK_ID: task,
        ANNOTATION_MAP_INDEX: str(index),
    }


def measurement(events: list[dict[str, object]], **more: object) -> Measurement:
    values: dict[str, object] = {
        "history": ClusterHistory(events),
        "started_at": 0.0,
        "ended_at": 100.0,
        "classes": (BURST,),
        "min_nodes": {"elastic": 0},
        **more,
    }
    return Measurement(**values)


class TestSteps:
    def test_a_value_holds_until_the_next_change(self) -> None:
        steps = Steps([(10, 3), (20, 1)], before=7)
        assert [steps.at(t) for t in (9.9, 10, 19.9, 20, 1e9)] == [7, 3, 3, 1, 1]

    def test_overlapping_intervals_are_counted(self) -> None:
        steps = Steps.counting([(0, 10), (5, 15), (15, math.inf), (3, 3)])
        assert [steps.at(t) for t in (-1, 0, 4, 5, 10, 15, 99)] == [0, 1, 1, 2, 1, 1, 1]

    def test_an_integral_is_cut_at_both_ends(self) -> None:
        assert (
            integral(lambda a, b: max(0, a - b), [Steps([(0, 4)]), Steps([(10, 4), (30, 1)])], 5, 40) == 4 * 5 + 3 * 10
        )


class TestNodes:
    def test_a_node_is_billed_from_its_request_to_its_end(self) -> None:
        report = figures(
            measurement([node(10, "launch_requested"), node(22, "registered"), node(23, "ready"), node(60, "deleted")])
        )
        assert report["node_seconds"] == 50
        assert report["node_seconds_explained"] == 0
        assert report["nodes_end"] == 0

    def test_a_node_that_stays_is_billed_until_now(self) -> None:
        report = figures(measurement([node(10, "launch_requested"), node(23, "ready")]))
        assert report["node_seconds"] == 90
        assert report["nodes_end"] == 1

    def test_min_nodes_explain_the_base(self) -> None:
        events = [node(0, "launch_requested", name) for name in ("e1", "e2")]
        report = figures(measurement(events, min_nodes={"elastic": 1}))
        assert (report["node_seconds"], report["node_seconds_explained"]) == (200, 100)

    def test_work_explains_a_node_from_binding_to_the_end_of_the_pod(self) -> None:
        events = [
            node(0, "launch_requested"),
            node(10, "ready"),
            pod(18, "created", "p", annotations=task_annotations("a")),
            pod(20, "bound", "p", node="e1"),
            pod(21, "running", "p"),
            pod(50, "finished", "p"),
            pod(70, "deleted", "p"),
        ]
        assert figures(measurement(events))["node_seconds_explained"] == 30

    def test_a_foreign_pod_explains_nothing(self) -> None:
        events = [node(0, "launch_requested"), pod(1, "created", "p"), pod(2, "bound", "p", node="e1")]
        assert figures(measurement(events))["node_seconds_explained"] == 0

    def test_two_pods_on_a_node_explain_it_once(self) -> None:
        events = [node(0, "launch_requested"), node(0, "launch_requested", "e2")]
        for name, start, end in (("p", 20, 40), ("q", 30, 50)):
            events.append(pod(start, "created", name, annotations=task_annotations(name)))
            events.append(pod(start, "bound", name, node="e1"))
            events.append(pod(end, "finished", name))
        events.sort(key=lambda event: event["t"])
        assert figures(measurement(events))["node_seconds_explained"] == 30

    def test_reservations_explain_as_many_nodes_as_they_hold_and_no_more_than_there_are(self) -> None:
        events = [node(10, "launch_requested"), node(10, "launch_requested", "e2")]
        reserved = [(0.0, {"elastic": 3}), (30.0, {"elastic": 1}), (60.0, {})]
        assert figures(measurement(events, reserved_samples=reserved))["node_seconds_explained"] == 2 * 20 + 30

    def test_a_placeholder_explains_its_node(self) -> None:
        events = [
            node(0, "launch_requested"),
            pod(5, "created", "hold", labels={LABEL_PLACEHOLDER: "true"}),
            pod(10, "bound", "hold", node="e1"),
            pod(35, "deleted", "hold"),
        ]
        report = figures(measurement(events))
        assert report["node_seconds_explained"] == 25
        assert report["placeholders_end"] == 0

    def test_a_placeholder_that_names_its_run_is_no_work(self) -> None:
        owner = {ANNOTATION_DAG_ID: "d", ANNOTATION_RUN_ID: "r1"}
        events = [
            node(0, "launch_requested"),
            pod(5, "created", "hold", labels={LABEL_PLACEHOLDER: "true"}, annotations=owner),
            pod(5, "unschedulable", "hold"),
            pod(10, "bound", "hold", node="e1"),
            pod(35, "deleted", "hold"),
        ]
        figures_of_pool = figures(measurement(events))["detail"]["node_pools"]["elastic"]
        assert (figures_of_pool["busy_node_seconds"], figures_of_pool["explained"]) == (0, 25)

    def test_a_placeholder_that_stays_is_reported(self) -> None:
        events = [pod(5, "created", "hold", labels={LABEL_PLACEHOLDER: "true"})]
        assert figures(measurement(events))["placeholders_end"] == 1


class TestSlots:
    def test_slots_follow_ready_cordon_loss_and_deletion(self) -> None:
        events = [
            node(0, "launch_requested"),
            node(10, "ready"),
            node(20, "cordoned"),
            node(25, "uncordoned"),
            node(30, "not_ready"),
            node(40, "ready"),
            node(50, "deleted"),
        ]
        usable = usable_slots(measurement(events), BURST)
        assert [usable.at(t) for t in (5, 10, 20, 25, 30, 40, 50)] == [0, 4, 0, 4, 0, 4, 0]

    def test_the_scarcest_resource_counts_and_foreign_pods_take_room(self) -> None:
        events = [
            node(0, "launch_requested"),
            node(10, "ready"),
            pod(20, "created", "daemon", requests={"cpu": 100, "memory": 3 * GIB, "pods": 1}),
            pod(20, "bound", "daemon", node="e1"),
            pod(30, "created", "ours", annotations=task_annotations("a"), requests={"cpu": 4000, "pods": 1}),
            pod(30, "bound", "ours", node="e1"),
            pod(60, "deleted", "daemon"),
        ]
        usable = usable_slots(measurement(events), BURST)
        assert [usable.at(t) for t in (10, 20, 30, 60)] == [4, 2, 2, 4]
        assert [usable_slots_at(ClusterHistory(events), BURST, t) for t in (5, 10, 20, 60)] == [0, 4, 2, 4]

    def test_pods_limit_slots_too(self) -> None:
        events = [{**node(0, "ready"), "allocatable": {"cpu": 64000, "memory": 999 * GIB, "pods": 3}}]
        assert usable_slots(measurement(events), BURST).at(1) == 3

    def test_nodes_of_other_pools_do_not_count(self) -> None:
        assert usable_slots(measurement([node(0, "ready", "f1", "fixed")]), BURST).at(1) == 0

    def test_phantom_slot_seconds_are_slots_above_what_fits(self) -> None:
        events = [node(0, "launch_requested"), node(10, "ready"), node(50, "cordoned")]
        samples = [(5.0, {"burst": 6, "default_pool": 128}), (52.0, {"burst": 0}), (90.0, {"burst": 1})]
        report = figures(measurement(events, slot_samples=samples))
        # 5–10: 6, 10–50: 6 − 4, 50–52: 6, 90–100: 1
        assert report["phantom_slot_seconds"] == 6 * 5 + 2 * 40 + 6 * 2 + 10
        assert report["detail"]["slot_seconds"] == 6 * 47 + 10
        assert report["slots_end"] == 1

    def test_slots_that_lag_behind_a_new_node_are_no_phantoms(self) -> None:
        samples = [(0.0, {"burst": 0}), (30.0, {"burst": 4})]
        assert figures(measurement([node(10, "ready")], slot_samples=samples))["phantom_slot_seconds"] == 0


class TestRuns:
    EVENTS = (
        node(0, "launch_requested"),
        node(12, "ready"),
        pod(5, "created", "a1", annotations=task_annotations("a", "r1")),
        pod(5, "unschedulable", "a1"),
        pod(12, "bound", "a1", node="e1"),
        pod(13, "running", "a1"),
        pod(20, "created", "b1", annotations=task_annotations("b", "r1")),
        pod(20, "unschedulable", "b1"),
        pod(25, "bound", "b1", node="e1"),
        pod(26, "running", "b1"),
        pod(44, "created", "a2", annotations=task_annotations("a", "r2")),
        pod(44, "bound", "a2", node="e1"),
        pod(45, "running", "a2"),
    )
    RUNS = (
        RunRow("d", "r1", "scheduled", "success", 3.0, 4.0, 40.0),
        RunRow("d", "r2", "scheduled", "success", 42.0, 42.5, 60.0),
        RunRow("d", "r3", "scheduled", "running", 90.0, 90.0, None),
        RunRow("d", "m1", "manual", "success", 1.0, 1.0, 2.0),
    )
    TASKS = (
        TaskRow("d", "r1", "a", -1, "success", 1),
        TaskRow("d", "r1", "b", -1, "success", 1),
        TaskRow("d", "r2", "a", -1, "success", 1),
        TaskRow("d", "r2", "b", -1, "failed", 2),
        TaskRow("d", "r2", "c", -1, "removed", 0),
        TaskRow("d", "r3", "a", -1, "running", 1),
    )

    @pytest.fixture
    def report(self) -> dict[str, object]:
        return figures(
            measurement(list(self.EVENTS), runs=self.RUNS, tasks=self.TASKS, first_tasks={"d": frozenset({"a"})})
        )

    def test_keys_come_in_the_promised_order(self, report: dict[str, object]) -> None:
        assert list(report)[:-1] == KEYS

    def test_only_finished_scheduled_runs_count(self, report: dict) -> None:
        assert (report["runs"], report["tasks"], report["failed_tasks"]) == (2, 4, 1)
        assert [run["retried_tasks"] for run in report["detail"]["runs"]] == [0, 1]

    def test_a_task_is_cold_when_its_pod_waited_more_than_five_seconds_for_a_node(self, report: dict) -> None:
        assert report["cold_tasks"] == 1  # a waited 7 s, b exactly 5 s
        assert [run["cold_tasks"] for run in report["detail"]["runs"]] == [["a"], []]

    def test_first_tasks_wait_from_the_start_of_the_run(self, report: dict) -> None:
        assert [run["first_task_wait_seconds"] for run in report["detail"]["runs"]] == [[9.0], [2.5]]
        assert report["first_task_wait_seconds_p95"] == 9.0

    def test_a_run_is_prewarmed_when_the_nodes_of_its_first_tasks_were_ready_before_it(self, report: dict) -> None:
        assert report["prewarmed_runs"] == 1
        assert [run["prewarmed"] for run in report["detail"]["runs"]] == [False, True]

    def test_a_run_that_waited_for_slots_is_not_prewarmed(self) -> None:
        runs = [RunRow("d", "r2", "scheduled", "success", 11.0, 11.0, 60.0)]  # its node was ready at 12 only
        report = figures(
            measurement(list(self.EVENTS), runs=runs, tasks=self.TASKS, first_tasks={"d": frozenset({"a"})})
        )
        assert (report["cold_tasks"], report["prewarmed_runs"]) == (0, 0)

    def test_a_pod_that_never_found_a_node_is_cold(self) -> None:
        events = [pod(90, "created", "p", annotations=task_annotations("a")), pod(90, "unschedulable", "p")]
        report = figures(measurement(events, runs=self.RUNS[:1], tasks=self.TASKS[:1]))
        assert report["cold_tasks"] == 1

    def test_mapped_tasks_are_told_apart(self) -> None:
        events = []
        for index, bound in ((0, 11), (1, 30)):
            name = f"p{index}"
            events.append(pod(10, "created", name, annotations=task_annotations("a", index=index)))
            events.append(pod(10, "unschedulable", name))
            events.append(pod(bound, "bound", name, node="e1"))
        tasks = [TaskRow("d", "r1", "a", index, "success", 1) for index in (0, 1)]
        report = figures(measurement(events, runs=self.RUNS[:1], tasks=tasks))
        assert report["detail"]["runs"][0]["cold_tasks"] == ["a[1]"]


def test_percentile_is_the_nearest_rank() -> None:
    assert percentile([], 0.95) is None
    assert percentile([3.0], 0.95) == 3.0
    assert percentile(range(1, 101), 0.95) == 95
    assert percentile(range(1, 11), 0.95) == 10


def test_pods_that_share_a_name_one_after_the_other_are_two() -> None:
    history = ClusterHistory(
        [pod(1, "created", "p"), pod(2, "deleted", "p"), pod(3, "created", "p", labels={"x": "y"}, uid="u2")]
    )
    assert [(life.created_at, life.gone_at) for life in history.pods.values()] == [(1.0, 2.0), (3.0, math.inf)]


def test_the_log_is_read_as_it_grows(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    tail = EventLogTail(log)
    assert tail.read() == []
    log.write_text('{"t":1,"kind":"x"}\n{"t":2,"ki')
    assert [event["t"] for event in tail.read()] == [1]
    with log.open("a") as file:
        file.write('nd":"y"}\n')
    assert [event["t"] for event in tail.read()] == [2]
    assert tail.read() == []


def test_classes_are_read_from_the_capacity_files_content() -> None:
    capacity = {
        "node_pools": {"elastic": {"min_nodes": 2}, "other": {}},
        "classes": {
            "burst": {"node_pools": ["elastic"], "airflow_pool": "burst", "slot_shape": {"cpu": "1", "memory": "2Gi"}}
        },
    }
    assert classes_of(capacity) == (BURST,)
    assert minimum_nodes(capacity) == {"elastic": 2, "other": 0}


def test_the_reporter_shares_no_code_with_what_it_judges() -> None:
    allowed = ("airflow_elastic.demo", "airflow_elastic.errors", "airflow_elastic.model.labels",
               "airflow_elastic.model.resources")  # fmt: skip
    for path in Path(airflow_elastic.demo.__file__).parent.glob("*.py"):
        for statement in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(statement, ast.ImportFrom):
                names = [statement.module or ""]
            elif isinstance(statement, ast.Import):
                names = [alias.name for alias in statement.names]
            for name in names:
                assert name.split(".")[0] not in ("airflow", "kubernetes", "sqlalchemy"), f"{path.name} imports {name}"
                if name.startswith("airflow_elastic"):
                    assert name.startswith(allowed), f"{path.name} imports {name}"
