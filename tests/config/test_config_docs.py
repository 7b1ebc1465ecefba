"""docs/capacity-file.md names every key, and its example is a good file."""

import re
from pathlib import Path

from airflow_elastic.config import parse_settings
from airflow_elastic.config import schema as models
from airflow_elastic.config.providers import PROVIDERS

TEXT = (Path(__file__).parents[2] / "docs" / "capacity-file.md").read_text()


def test_the_example_is_a_good_file():
    example = re.search(r"```yaml\n(version: 1.*?)```", TEXT, re.DOTALL)[1]
    settings = parse_settings(example, "docs/capacity-file.md")
    assert [each.name for each in settings.classes] == ["core", "burst"]


def test_every_key_is_documented_with_its_section():
    sections = {
        "The file itself": models.CapacityFile,
        "node_pools: interchangeable nodes": models.NodePoolEntry,
        "classes: what a kind of task may run on": models.ClassEntry,
        "rules: classes for tasks that name none": models.RuleEntry,
        "limits: what one run may ask for itself": models.LimitsEntry,
        "scaling: how the controller scales": models.ScalingEntry,
    }
    for title, model in sections.items():
        section = TEXT.split(f"\n## {title}\n")[1].split("\n## ")[0]
        for key in models.fields_of(model):
            assert f"`{key}`" in section, f"{title}: {key}"
    for provider, options in PROVIDERS.items():
        assert all(f"`{word}`" in TEXT for word in (provider, *options.known))
