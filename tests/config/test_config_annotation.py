import math

import pytest

from airflow_elastic.config import parse_run_annotation, parse_settings, resolve_class
from airflow_elastic.errors import ConfigurationError
from airflow_elastic.model.demand import RunAnnotation
from airflow_elastic.model.settings import Settings


@pytest.mark.parametrize("raw", [None, {}])
def test_asking_for_nothing(good_settings, raw):
    assert parse_run_annotation(raw, good_settings) == RunAnnotation()


def test_within_the_limits(good_settings):
    asked = {"nodes": 4, "class": "burst", "hold": "30m"}
    assert parse_run_annotation(asked, good_settings) == RunAnnotation(4, "burst", 1800.0)
    assert parse_run_annotation({"nodes": 2.0}, good_settings) == RunAnnotation(nodes=2)
    assert parse_run_annotation({"hold": 60}, good_settings) == RunAnnotation(hold_seconds=60)


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ({"nodes": 5}, "nodes 5 is over the limit of 4 nodes a run: ask for fewer, or let an admin raise limits."),
        ({"nodes": 10**9}, "nodes 1000000000 is over the limit of 4"),
        ({"nodes": -1}, "nodes -1 is negative: write a whole number from 0 to 4"),
        ({"nodes": math.nan}, "nodes nan is not a finite number"),
        ({"nodes": math.inf}, "nodes inf is not a finite number"),
        ({"nodes": True}, "nodes true is not a number"),
        ({"nodes": 1.5}, "nodes 1.5 is not a whole number"),
        ({"nodes": "3"}, "nodes '3' is not a number"),
        ({"nodes": None}, "nodes empty is not a number"),
        ({"nodes": 10**5000}, "a number of more than 30 digits is over the limit"),
        ({"node": 3}, "unknown key 'node': did you mean nodes?"),
        ({"class": "brst"}, "class 'brst' is not known: did you mean burst?"),
        ({"class": "core"}, "class 'core' is not allowed for runs: use burst, or let an admin add it to limits."),
        ({"class": ["burst"]}, "class a list of one item is not a class's name"),
        ({"hold": "3h"}, "hold '3h' is over the limit of 2h: ask for less, or let an admin raise limits.max_hold"),
        ({"hold": "-3h"}, "hold '-3h' is not a duration: write seconds"),
        ({"hold": -5}, "hold -5 is negative"),
        ([1], "The run's annotation is a list of one item, not a mapping"),
        ("nodes: 3", "The run's annotation is 'nodes: 3', not a mapping"),
        (17, "The run's annotation is 17, not a mapping"),
    ],
)  # fmt: skip
def test_refusals_say_the_cause_and_the_next_step(good_settings, raw, sentence):
    annotation = parse_run_annotation(raw, good_settings)
    assert sentence in annotation.refused
    assert annotation == RunAnnotation(refused=annotation.refused)


def test_a_refusal_names_all_causes_and_honours_nothing(good_settings):
    annotation = parse_run_annotation({"nodes": 2, "hold": "9h", "clas": "burst"}, good_settings)
    assert "unknown key 'clas'" in annotation.refused
    assert "hold '9h' is over the limit" in annotation.refused
    assert annotation.nodes == 0


def test_more_nodes_than_the_class_can_have(good_text):
    settings = parse_settings(good_text.replace("max_nodes: 4, ", "max_nodes: 100, "), "x")
    annotation = parse_run_annotation({"nodes": 7, "class": "burst"}, settings)
    assert "nodes 7 is more than class burst can ever have (6 nodes)" in annotation.refused
    assert "raise max_nodes of node pool elastic" in annotation.refused


def test_what_is_echoed_is_short(good_settings):
    for raw in ("x" * 10**6, {"x" * 10**6: 1}, {"nodes": "x" * 10**6}, {"hold": "x" * 10**6}, {"class": "x" * 10**6}):
        annotation = parse_run_annotation(raw, good_settings)
        assert annotation.refused
        assert len(annotation.refused) < 400


def test_many_unknown_keys_stay_one_sentence(good_settings):
    annotation = parse_run_annotation({f"key{number}": number for number in range(10_000)}, good_settings)
    assert len(annotation.refused) < 1500


def test_without_any_class_an_annotation_is_still_answered():
    assert parse_run_annotation({"nodes": 3}, Settings()).nodes == 3
    assert "no class is declared" in parse_run_annotation({"class": "burst"}, Settings()).refused


def test_resolving_classes(good_settings):
    assert resolve_class(good_settings, "").name == "burst"
    assert resolve_class(good_settings, "core").name == "core"
    with pytest.raises(ConfigurationError, match=r"capacity class 'cor' is not in good\.yaml; did you mean core\?"):
        resolve_class(good_settings, "cor")
    with pytest.raises(ConfigurationError, match="no capacity class is declared"):
        resolve_class(Settings(), "")
