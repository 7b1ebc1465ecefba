"""The JSON schema for editors: up to date in the documentation, and of one mind with the reader."""

import json
from pathlib import Path

import jsonschema
import pytest
from config_strategies import files
from hypothesis import given, settings

from airflow_elastic.cli.output import to_json
from airflow_elastic.config import json_schema
from airflow_elastic.config.document import read_document

CHECKED_IN = Path(__file__).parents[2] / "docs" / "capacity-file.schema.json"


@pytest.fixture(scope="module")
def validator():
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_the_checked_in_schema_is_up_to_date():
    assert CHECKED_IN.read_text() == to_json(json_schema()) + "\n", (
        "write it anew: airflow elastic validate --schema > docs/capacity-file.schema.json"
    )


def test_every_key_of_the_file_has_a_help_text():
    schema = json_schema()
    for name, model in {"CapacityFile": schema, **schema["$defs"]}.items():
        for key, entry in model["properties"].items():
            assert entry.get("description"), f"{name}.{key}"
        assert model["additionalProperties"] is False


@settings(max_examples=50, deadline=None, derandomize=True)
@given(files())
def test_sound_files_are_sound_by_the_schema(data):
    jsonschema.Draft202012Validator(json_schema()).validate(data)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("version: 1", "version: 2"),
        ("mode: manage", "mode: mange"),
        ("mode: manage", "mod: manage"),
        ("max_nodes: 6", "max_nodes: 10001"),
        ("max_nodes: 6", "max_nodes: -1"),
        ("boot_seconds: 30", "boot_seconds: 1 week"),
        ("memory: 8Gi, pods: 20", "pods: 20"),
        ("node_pools: [fixed]", "node_pools: fixed"),
        ("evictable: true", "evictable: yes"),
        ("  elastic:", "  Elastic_1:"),
        ("limits:", "rules: [{dag_id: x}]\nlimits:"),
    ],
)
def test_the_schema_sees_what_an_editor_should_underline(validator, good_text, old, new):
    data = read_document(good_text, "x").data
    validator.validate(data)
    broken = read_document(good_text.replace(old, new), "x").data
    assert not validator.is_valid(json.loads(json.dumps(broken)))
