"""DAG structures from serialized JSON, against what Airflow itself builds from the same JSON."""

from __future__ import annotations

import json
import zlib
from datetime import datetime, timedelta
from typing import Any

import pytest
from airflow.providers.standard.operators.bash import BashOperator
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, TaskGroup, task, task_group
from airflow.serialization.serialized_objects import DagSerialization
from airflow_db_helpers import FixedProfiles, carrier

from airflow_elastic.airflow_db.dag_source import DagSource
from airflow_elastic.airflow_db.encoding import decoded, literal_width
from airflow_elastic.airflow_db.shapes import class_pools, dag_shape
from airflow_elastic.airflow_db.structure import DagStructure, TaskStructure, parse_structure
from airflow_elastic.model.demand import DagShape, TaskSpec
from airflow_elastic.model.resources import Resources
from airflow_elastic.model.settings import Settings


def structure_of(dag: DAG) -> DagStructure:
    return parse_structure(json.loads(json.dumps(DagSerialization.to_dict(dag))), "hash")


def by_id(structure: DagStructure) -> dict[str, TaskStructure]:
    return {each.task_id: each for each in structure.tasks}


def specs(shape: DagShape) -> dict[str, TaskSpec]:
    return {each.task_id: each for each in shape.tasks}


def everything() -> DAG:
    """Plain and mapped operators, decorated tasks, groups, mapped groups, setup and teardown, rules of all kinds."""
    with DAG(
        "everything",
        schedule="@daily",
        start_date=datetime(2026, 1, 2),
        end_date=datetime(2027, 1, 1),
        params={"elastic": {"nodes": 3}, "other": 1},
        max_active_tasks=7,
        max_active_runs=2,
    ) as dag:
        first = BashOperator(
            task_id="first", bash_command="true", executor_config=carrier(), pool="burst", pool_slots=3
        )
        mapped = BashOperator.partial(
            task_id="mapped", executor_config=carrier("core", cpu="2"), pool="core", pool_slots=2
        ).expand(bash_command=["a", "b", "c"], env=[{"A": "1"}, {"A": "2"}])
        last = BashOperator(task_id="last", bash_command="true", trigger_rule="all_done", pool="burst")

        @task(executor_config=carrier())
        def numbers() -> list[int]:
            return [1, 2]

        @task(executor_config=carrier())
        def each(number: int) -> int:
            return number

        @task_group
        def part(word: str) -> None:
            inner = BashOperator(task_id="inner", bash_command="true", executor_config=carrier())
            inner >> EmptyOperator(task_id="end")

        with TaskGroup("group"):
            in_group = EmptyOperator(task_id="nothing")
        made = BashOperator(task_id="make", bash_command="true").as_setup()
        removed = BashOperator(task_id="remove", bash_command="true").as_teardown(setups=made)
        parts = part.expand(word=["p", "q", "r"])
        over = each.expand(number=numbers())
        first >> mapped >> parts >> in_group >> last
        made >> over >> removed
    return dag


def test_the_structure_is_that_of_the_dag_which_airflow_builds() -> None:
    dag = everything()
    structure = structure_of(dag)
    real = DagSerialization.from_dict(DagSerialization.to_dict(dag))
    tasks = by_id(structure)
    assert tasks.keys() == set(real.task_ids)
    for name, each in tasks.items():
        assert set(each.upstream) == real.get_task(name).upstream_task_ids, name
        assert each.trigger_rule == real.get_task(name).trigger_rule, name
        assert (each.pool, each.pool_slots) == (real.get_task(name).pool, real.get_task(name).pool_slots), name
        assert each.is_empty == real.get_task(name).inherits_from_empty_operator, name
        in_mapped_group = any(True for _ in real.get_task(name).iter_mapped_task_groups())
        assert each.is_mapped == (real.get_task(name).is_mapped or in_mapped_group), name
    seen: set[str] = set()
    for each in structure.tasks:
        assert seen.issuperset(each.upstream)
        seen.add(each.task_id)
    restriction = real._time_restriction
    assert (structure.earliest, structure.latest) == (restriction.earliest.timestamp(), restriction.latest.timestamp())
    assert (structure.max_active_tasks, structure.max_active_runs, structure.catchup) == (7, 2, False)
    assert structure.annotation == {"nodes": 3}
    assert structure.timetable == DagSerialization.to_dict(dag)["dag"]["timetable"]


def test_widths_are_exact_where_the_file_states_them() -> None:
    tasks = by_id(structure_of(everything()))
    widths = {name: tasks[name].width for name in ("first", "mapped", "each", "part.inner", "part.end")}
    assert widths == {"first": 1, "mapped": 6, "each": None, "part.inner": 3, "part.end": 3}


def test_carriers_survive_on_plain_mapped_and_decorated_tasks() -> None:
    tasks = by_id(structure_of(everything()))
    classes = {name: each.capacity.capacity_class for name, each in tasks.items() if each.capacity}
    assert classes == {
        "first": "burst",
        "mapped": "core",
        "numbers": "burst",
        "each": "burst",
        "part.inner": "burst",
    }
    assert tasks["mapped"].capacity is not None
    assert tasks["mapped"].capacity.requests == Resources.parse({"cpu": "2"})


@pytest.mark.parametrize(
    ("first", "dates"),
    [
        (None, [datetime(2026, 1, 5), datetime(2026, 1, 4)]),
        (datetime(2026, 1, 6), [None, datetime(2026, 1, 4)]),
        (datetime(2026, 1, 6), [None, None]),
    ],
)
@pytest.mark.parametrize("last", [None, datetime(2026, 9, 1)])
@pytest.mark.parametrize("ends", [[None, None], [datetime(2026, 8, 1), None], [datetime(2026, 8, 1)] * 2])
def test_limits_are_those_that_airflow_derives(first: Any, dates: list[Any], last: Any, ends: list[Any]) -> None:
    with DAG("limits", schedule="@daily", start_date=first, end_date=last) as dag:
        for number, (start, end) in enumerate(zip(dates, ends, strict=True)):
            BashOperator(task_id=f"t{number}", bash_command="true", start_date=start, end_date=end)
    structure = structure_of(dag)
    restriction = DagSerialization.from_dict(DagSerialization.to_dict(dag))._time_restriction
    expected = tuple(moment.timestamp() if moment else None for moment in (restriction.earliest, restriction.latest))
    assert (structure.earliest, structure.latest) == expected


def test_a_shape_has_classes_requests_durations_and_widths(settings: Settings) -> None:
    shape = dag_shape(structure_of(everything()), settings, FixedProfiles(70.0, 9), is_paused=True)
    tasks = specs(shape)
    assert (shape.dag_id, shape.max_active_tasks, shape.max_active_runs, shape.is_paused) == ("everything", 7, 2, True)
    first, mapped, last, each = (tasks[name] for name in ("first", "mapped", "last", "each"))
    assert first.needs_node
    assert first.requests == Resources.parse({"cpu": "500m", "memory": "1Gi", "pods": 1})
    assert (first.pool, first.pool_slots, first.duration.q50_seconds) == ("burst", 3, 70.0)
    assert (mapped.capacity_class, mapped.is_mapped, mapped.mapped_width) == ("core", True, 6)
    assert each.mapped_width == 9
    # In the pool of a class without a carrier: it counts as if it asked for the default.
    assert (last.needs_node, last.capacity_class, last.trigger_rule) == (True, "burst", "all_done")
    assert last.requests == settings.default_requests + Resources.of(pods=1)
    assert not tasks["make"].needs_node
    assert tasks["make"].requests == Resources()
    assert not tasks["group.nothing"].needs_node
    assert tasks["group.nothing"].duration.q90_seconds == 0.0


def test_a_dag_matters_when_a_task_may_need_a_node(settings: Settings) -> None:
    pools = class_pools(settings)
    with DAG("plain", schedule=None) as plain:
        BashOperator(task_id="t", bash_command="true")
    with DAG("pooled", schedule=None) as pooled:
        BashOperator(task_id="t", bash_command="true", pool="burst")
    assert not structure_of(plain).uses(pools)
    assert structure_of(pooled).uses(pools)
    assert not structure_of(pooled).uses(frozenset())
    assert structure_of(everything()).uses(frozenset())


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"dag": None},
        {"dag": {"tasks": []}},
        {"dag": {"dag_id": "x", "tasks": [{"__var": {}}]}},
        {"dag": {"dag_id": "x", "tasks": [7]}},
        {"dag": {"dag_id": "x", "tasks": [], "max_active_tasks": "many"}},
        {"dag": {"dag_id": "x", "tasks": [], "task_group": {"children": {"a": 5}}}},
        {
            "dag": {
                "dag_id": "x",
                "tasks": [
                    {"__var": {"task_id": "a", "downstream_task_ids": ["b"]}},
                    {"__var": {"task_id": "b", "downstream_task_ids": ["a"]}},
                ],
            }
        },
    ],
)
def test_foreign_json_is_a_value_error(data: Any) -> None:
    with pytest.raises(ValueError, match=r"serialized form|cycle|invalid literal|unpack"):
        parse_structure(data)


def test_encoded_values_are_read_to_a_limited_depth() -> None:
    assert decoded({"__type": "dict", "__var": {"a": {"__type": "tuple", "__var": [1, 2.5, None, "x"]}}}) == {
        "a": [1, 2.5, None, "x"]
    }
    assert decoded({"__type": "datetime", "__var": 5.0}) == 5.0
    assert decoded({"__type": "pod", "__var": {"deep": 1}}) is None
    nested: Any = 1
    for _ in range(500):
        nested = [nested]
    assert isinstance(decoded(nested), list)
    assert literal_width({"type": "list-of-dicts", "value": [{"a": 1}, {"a": 2}]}) == 2
    assert literal_width({"type": "list-of-dicts", "value": {"__type": "xcomref", "__var": {}}}) is None
    assert literal_width(None) is None


def test_only_what_changed_is_read_again(session: Any, engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow_db_helpers import write_dags

    from airflow_elastic.airflow_db import dag_source

    parsed: list[str] = []
    real = dag_source.parse_structure
    monkeypatch.setattr(
        dag_source, "parse_structure", lambda data, dag_hash: parsed.append(dag_hash) or real(data, dag_hash)
    )

    def simple(name: str, pool: str) -> DAG:
        with DAG(name, schedule=None) as dag:
            BashOperator(task_id="t", bash_command="true", pool=pool)
        return dag

    write_dags(session, *(simple(f"d{number}", "burst") for number in range(60)))
    source = DagSource(scan_seconds=5)
    with engine.connect() as connection:
        source.refresh(connection, 100.0)
        assert len(source.structures) == len(parsed) == 60
        write_dags(session, simple("d7", "core"))
        source.refresh(connection, 101.0)
        assert source.structures["d7"].tasks[0].pool == "burst"
        source.refresh(connection, 105.0)
        assert source.structures["d7"].tasks[0].pool == "core"
        assert len(parsed) == 61
        write_dags(session, simple("new", "core"))
        source.refresh(connection, 106.0, wanted=["new"])
        assert "new" in source.structures


@pytest.mark.parametrize("broken", ["not json", "null", "[1]", '{"dag": {"dag_id": "other", "tasks": []}}'])
def test_a_broken_dag_is_named_and_the_rest_is_read(session: Any, engine: Any, broken: str) -> None:
    from airflow_db_helpers import write_dags
    from sqlalchemy import text

    dags = []
    for name in ("bad", "good"):
        with DAG(name, schedule=timedelta(days=1), start_date=datetime(2026, 1, 1)) as dag:
            BashOperator(task_id="t", bash_command="true", pool="burst")
        dags.append(dag)
    write_dags(session, *dags)
    session.execute(text("UPDATE serialized_dag SET data = :text WHERE dag_id = 'bad'"), {"text": broken})
    session.commit()
    source = DagSource()
    with engine.connect() as connection:
        source.refresh(connection, 1.0)
        assert source.structures.keys() == {"good"}
        (problem,) = source.problems
        assert problem.startswith("DAG bad is left out of planning: ")
        assert "airflow dags reserialize" in problem
        session.execute(text("DELETE FROM serialized_dag WHERE dag_id = 'bad'"))
        session.commit()
        source.refresh(connection, 10.0)
        assert source.problems == ()


def test_compressed_dags_are_read(session: Any, engine: Any) -> None:
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow_db_helpers import write_dags
    from sqlalchemy import null, update

    dag = everything()
    write_dags(session, dag)
    compressed = zlib.compress(json.dumps(DagSerialization.to_dict(dag)).encode())
    table = SerializedDagModel.__table__
    session.execute(update(table).values(data=null(), data_compressed=compressed))
    session.commit()
    source = DagSource()
    with engine.connect() as connection:
        source.refresh(connection, 1.0)
    assert source.problems == ()
    assert by_id(source.structures["everything"])["first"].pool_slots == 3
