import pytest

from airflow_elastic.config import json_schema
from airflow_elastic.config.values import nearest

RULE = ("class", "dag_id", "task_id", "operator", "tag", "airflow_pool")
SCALING = ("tick_seconds", "horizon", "max_hold", "scale_in_cooldown")


@pytest.mark.parametrize(
    ("typed", "known", "meant"),
    [
        ("dag", RULE, "dag_id"),
        ("pool", RULE, "airflow_pool"),
        ("tick", SCALING, "tick_seconds"),
        ("TICK", SCALING, "tick_seconds"),
        ("horizn", SCALING, "horizon"),
        ("tag", RULE, "tag"),
        ("zzz", RULE, ""),
        ("", RULE, ""),
    ],
)
def test_a_known_name_that_holds_the_typed_word_comes_first(typed, known, meant):
    assert nearest(typed, known) == meant


def test_the_names_above_are_those_of_the_file():
    text = str(json_schema())
    assert all(name in text for name in ("dag_id", "tick_seconds"))
