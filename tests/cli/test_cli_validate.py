import argparse
import json

import pytest

from airflow_elastic.cli.commands import validate
from airflow_elastic.config import json_schema
from airflow_elastic.errors import ConfigurationError

GOOD = """\
version: 1
node_pools:
  fixed: {selector: {pool: fixed}, shape: {cpu: 4, memory: 8Gi}, min_nodes: 1, max_nodes: 1, provider: none}
  elastic: {selector: {pool: elastic}, shape: {cpu: 8, memory: 8Gi}, max_nodes: 6}
classes:
  core: {node_pools: [fixed], slot_shape: {cpu: 1, memory: 2Gi}}
  burst: {node_pools: [elastic, fixed], slot_shape: {cpu: 1, memory: 1Gi}, evictable: true}
"""


def run(file=None, *, output="table", schema=False):
    validate.run(argparse.Namespace(file=None if file is None else str(file), output=output, schema=schema))


@pytest.fixture(autouse=True)
def _nothing_configured(monkeypatch):
    monkeypatch.setenv("AIRFLOW__ELASTIC__CAPACITY_FILE", "")


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "capacity.yaml"
    path.write_text(GOOD)
    return path


@pytest.fixture
def bad(tmp_path):
    path = tmp_path / "capacity.yaml"
    path.write_text(
        GOOD.replace("max_nodes: 6", "max_nods: 6").replace("core: {node_pools: [fixed]", "core: {node_pools: [x]")
    )
    return path


def test_a_good_file_as_tables(good, capsys):
    run(good)
    out = capsys.readouterr().out
    assert f"{good} is good: mode observe" in out.replace("\n", "")
    assert "elastic 8, fixed 4" in out
    assert "core (default)" in out


def test_a_good_file_as_json(good, capsys):
    run(good, output="json")
    document = json.loads(capsys.readouterr().out)
    assert (document["valid"], document["mistakes"], document["mode"]) == (True, [], "observe")
    core, burst = document["classes"]
    assert (core["slots_per_node"], core["most_slots"]) == ({"fixed": 4}, 4)
    assert (burst["slots_per_node"], burst["most_slots"]) == ({"elastic": 8, "fixed": 4}, 52)
    assert document["node_pools"][0]["classes"] == ["core", "burst"]


def test_all_mistakes_as_a_table(bad, capsys):
    with pytest.raises(SystemExit) as caught:
        run(bad)
    assert caught.value.code == 1
    out = capsys.readouterr().out
    assert "2 mistakes" in out
    assert "4:70" in out
    assert "node_pools.elastic.max_nods" in out
    assert "classes.core.node_pools[0]" in out


def test_all_mistakes_as_json(bad, capsys):
    with pytest.raises(SystemExit) as caught:
        run(bad, output="json")
    assert caught.value.code == 1
    document = json.loads(capsys.readouterr().out)
    assert document["valid"] is False
    assert [(mistake["line"], mistake["key"]) for mistake in document["mistakes"]] == [
        (4, "node_pools.elastic.max_nods"),
        (6, "classes.core.node_pools[0]"),
    ]


def test_names_that_look_like_markup_are_shown_as_they_are(tmp_path, capsys):
    path = tmp_path / "capacity.yaml"
    path.write_text("version: 1\n'[red]x[/red]': 1\n'[/]': 2\n")
    with pytest.raises(SystemExit):
        run(path)
    out = capsys.readouterr().out
    assert "[red]x[/red]" in out
    assert "[/]" in out


def test_the_configured_file_is_checked_when_none_is_named(good, capsys, monkeypatch):
    monkeypatch.setenv("AIRFLOW__ELASTIC__CAPACITY_FILE", str(good))
    run(output="json")
    assert json.loads(capsys.readouterr().out)["file"] == str(good)


def test_no_file_at_all_says_the_next_step():
    with pytest.raises(ConfigurationError, match="airflow elastic init"):
        run()


def test_the_schema(capsys):
    run(schema=True)
    assert json.loads(capsys.readouterr().out) == json_schema()
