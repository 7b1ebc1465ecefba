from __future__ import annotations

import pytest

from airflow_elastic.embedded.selectors import (
    Selection,
    parse_field_selector,
    parse_label_selector,
    selector_matches,
)

LABELS = {"app": "web", "tier": "front", "example.com/run": "7"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("app=web", True),
        ("app==web", True),
        ("app!=web", False),
        ("gone!=web", True),
        ("app in (web, db),tier notin (back)", True),
        ("app in (db),tier=front", False),
        ("tier", True),
        ("!tier", False),
        ("!gone", True),
        ("example.com/run=7", True),
        ("app=web,tier=back", False),
        (" app = web , tier ", True),
    ],
)
def test_label_selectors(text: str, expected: bool) -> None:
    selection = Selection("", parse_label_selector(text))
    assert selection.matches({"metadata": {"labels": LABELS}}) is expected


@pytest.mark.parametrize("text", ["a b", "=x", "!", "app in web", "(a)"])
def test_label_selectors_that_cannot_be_read(text: str) -> None:
    with pytest.raises(ValueError, match="unable to parse"):
        parse_label_selector(text)


def test_field_selectors() -> None:
    pod = {"metadata": {"name": "a", "namespace": "n"}, "spec": {"nodeName": "x"}, "status": {"phase": "Running"}}
    for text, expected in [
        ("metadata.name=a", True),
        ("status.phase!=Failed,status.phase!=Succeeded", True),
        ("spec.nodeName=", False),
        ("status.podIP=", True),
    ]:
        assert Selection("", (), parse_field_selector(text)).matches(pod) is expected
    node = {"metadata": {"name": "a"}, "spec": {}}
    assert Selection("", (), parse_field_selector("spec.unschedulable=false")).matches(node)
    node["spec"]["unschedulable"] = True
    assert Selection("", (), parse_field_selector("spec.unschedulable=true")).matches(node)
    with pytest.raises(ValueError, match="invalid selector"):
        parse_field_selector("nonsense")


def test_a_single_object_is_known_by_name() -> None:
    assert Selection("", (), parse_field_selector("metadata.name=a")).name == "a"
    assert Selection("", (), parse_field_selector("metadata.name!=a")).name == ""


def test_selector_objects() -> None:
    assert selector_matches({"matchLabels": {"app": "web"}}, LABELS)
    assert not selector_matches({"matchLabels": {"app": "db"}}, LABELS)
    expression = {"key": "tier", "operator": "NotIn", "values": ["back"]}
    assert selector_matches({"matchExpressions": [expression]}, LABELS)
    assert selector_matches({}, LABELS)
    assert not selector_matches(None, LABELS)
