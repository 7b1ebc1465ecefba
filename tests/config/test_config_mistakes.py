"""Each kind of mistake: where it is, what it is, what would be right; and all of a file at once."""

import os
import pickle
from pathlib import Path

import pytest

from airflow_elastic.config import CapacityFileError, Mistake, load_settings, parse_settings
from airflow_elastic.errors import ConfigurationError


def mistakes_of(text, source="capacity.yaml"):
    with pytest.raises(CapacityFileError) as caught:
        parse_settings(text, source)
    return caught.value.mistakes


def only_mistake(text):
    (mistake,) = mistakes_of(text)
    return mistake


def changed(text, old, new):
    assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
    return text.replace(old, new)


# What stands in a good file, what stands there instead (› marks the place of the mistake), key, cause, remedy.
CASES = [
    ("mode: manage", "mode: ›mange", "mode", "'mange' is not known", "did you mean manage?"),
    ("mode: manage", "›mod: manage", "mod", "unknown key", "did you mean mode?"),
    ("mode: manage", "mode: manage\n›mode: sync", "mode", "twice (first in line 2)", "keep one"),
    ("mode: manage", "mode: manage\n›\tx: 1", "", "a tab", "indent with spaces"),
    ("mode: manage", "mode: [manage\ndefault_class›: x", "", "not YAML", "brackets"),
    ("mode: manage", "mode: ›!secret manage", "", "tag '!secret' has no meaning", "remove it"),
    ("mode: manage", "mode: manage›\x07", "", "U+0007 is not allowed", "remove it"),
    ("version: 1", "version: ›2", "version", "2 is out of bounds", "write 1"),
    ("version: 1\n", "›namespace: x\n", "version", "is missing", "1"),
    ("version: 1", "version: 1\nnamespace: ›A_b", "namespace", "'A_b' is not", "lower-case"),
    ("default_class: burst", "default_class: ›brust", "default_class", "no class 'brust'", "did you mean burst?"),
    ("max_nodes: 6", "›max_nods: 6", "node_pools.elastic.max_nods", "unknown key", "did you mean max_nodes?"),
    ("max_nodes: 6", "max_nodes: ›1000000000", "node_pools.elastic.max_nodes", "out of bounds", "to 10,000"),
    ("max_nodes: 6", "max_nodes: ›-6", "node_pools.elastic.max_nodes", "-6 is negative", "from 0"),
    ("max_nodes: 6", "max_nodes: ›6.5", "node_pools.elastic.max_nodes", "not a whole number", "whole number"),
    ("max_nodes: 6", "max_nodes: ›true", "node_pools.elastic.max_nodes", "true is not a number", "whole number"),
    ("max_nodes: 6", "max_nodes: ›.nan", "node_pools.elastic.max_nodes", "nan is not", "whole number"),
    ("max_nodes: 6", "max_nodes: ›'6'", "node_pools.elastic.max_nodes", "'6' is not a number", "whole number"),
    ("max_nodes: 6", "price_per_node_hour: ›-.inf", "node_pools.elastic.price_per_node_hour", "not a finite", "number"),
    ("max_nodes: 6", "capacity_type: ›Spot", "node_pools.elastic.capacity_type", "'Spot'", "did you mean spot?"),
    ("max_nodes: 6", "taints: [{key: a, effect: ›NoRun}]", "node_pools.elastic.taints[0].effect", "'NoRun'", "NoEx"),
    ("max_nodes: 6", "taints: [›{value: a}]", "node_pools.elastic.taints[0].key", "is missing", "dedicated"),
    ("min_nodes: 1", "min_nodes: ›3", "node_pools.fixed.min_nodes", "3 is more than max_nodes 1", "at most 1"),
    ("boot_seconds: 30", "boot_seconds: ›1 week", "node_pools.elastic.boot_seconds", "'1 week'", '"90s"'),
    ("boot_seconds: 30", "boot_seconds: ›2d", "node_pools.elastic.boot_seconds", "out of bounds", "0s to 1d"),
    ("boot_seconds: 30", "boot_seconds: 30\n    boot_seconds_p95: ›5", "node_pools.elastic.boot_seconds_p95",
     "less than boot_seconds", "longer"),
    ("{pool: fixed}", "›{}", "node_pools.fixed.selector", "empty", "name a label"),
    ("{pool: elastic}", "›{pool: fixed}", "node_pools.elastic.selector", "same selector", "add a label"),
    ("{pool: elastic}", "›{pool: fixed, zone: a}", "node_pools.elastic.selector", "every node of it is also", "add"),
    ("{pool: fixed}", "{pool: ›7}", "node_pools.fixed.selector.pool", "7 is a number, not text", '"7"'),
    ("{pool: fixed}", "{›pool/: f}", "node_pools.fixed.selector.pool/", "not a Kubernetes label key", "prefix"),
    ("{pool: fixed}", "{pool: ›a b}", "node_pools.fixed.selector.pool", "'a b' is not", "letters"),
    ("memory: 8Gi, pods", "›memry: 8Gi, memory: 8Gi, pods", "node_pools.fixed.shape.memry", "not a resource",
     "did you mean memory?"),
    ("memory: 8Gi, pods", "memory: ›8GB, pods", "node_pools.fixed.shape.memory", "'8GB'", "8Gi"),
    ("memory: 8Gi, pods", "memory: ›0, pods", "node_pools.fixed.shape.memory", "nothing", "above 0"),
    ('{cpu: "4", memory: 8Gi, pods: 20}', "›{cpu: 4}", "node_pools.fixed.shape", "memory is missing", "{cpu: 4,"),
    ("classes:\n", "  ›Spot!: {selector: {a: b}, shape: {cpu: 1, memory: 1Gi}}\nclasses:\n", "node_pools.Spot!",
     "'Spot!' is not", "lower-case"),
    ("provider: none", "provider: ›nonne", "node_pools.fixed.provider", "'nonne'", "did you mean none?"),
    ("provider: none", "provider: ›scale", "node_pools.fixed.provider_options", "needs group and version", "{group:"),
    ("provider: none", "provider_options: {›grup: x}", "node_pools.fixed.provider_options.grup", "no such option",
     "placeholder_image"),
    ("node_pools: [fixed]", "node_pools: [›fixd]", "classes.core.node_pools[0]", "'fixd'", "did you mean fixed?"),
    ("node_pools: [fixed]", "node_pools: ›[]", "classes.core.node_pools", "empty", "fixed or elastic"),
    ("node_pools: [fixed]", "node_pools: [fixed, ›fixed]", "classes.core.node_pools[1]", "twice", "keep one"),
    ("node_pools: [fixed]", "node_pools: ›fixed", "classes.core.node_pools", "not a list", "[spot, on-demand]"),
    ("{node_pools: [fixed], slot_shape: {cpu: 1, memory: 1Gi}}", "›5", "classes.core", "5 is not a mapping", "slot"),
    ("{cpu: 1, memory: 1Gi}", "›{cpu: 5}", "classes.core.slot_shape", "fits on no node", "at most one node's"),
    ("{cpu: 500m, memory: 1Gi}", "›{memory: 1}", "classes.burst.slot_shape", "slots", "larger"),
    ("airflow_pool: spare, slot_shape: ", "airflow_pool: core, slot_shape: ›", "classes.burst.slot_shape",
     "share the Airflow pool 'core'", "same slot_shape"),
    ("airflow_pool: spare", "airflow_pool: ›default_pool", "classes.burst.airflow_pool", "every task", "own"),
    ("evictable: true", "evictable: ›yes", "classes.burst.evictable", "'yes'", "true or false"),
    ("evictable: true", "priority_class: ›A", "classes.burst.priority_class", "'A' is not", "lower-case"),
    ("evictable: true", "priority_class: ›airflow-elastic-placeholder", "classes.burst.priority_class",
     "for placeholder pods", "another"),
    ("evictable: true", "wait_price_ratio: ›.nan", "classes.burst.wait_price_ratio", "not a finite", "number from 0"),
    ("max_hold: 2h", "max_hold: ›2 hours", "limits.max_hold", "'2 hours'", '"4h"'),
    ("[burst]", "[›bursts]", "limits.allowed_classes[0]", "no class 'bursts'", "did you mean burst?"),
    ("limits:", "rules: [{class: ›cor}]\nlimits:", "rules[0].class", "no class 'cor'", "did you mean core?"),
    ("limits:", "rules: [›{dag_id: x}]\nlimits:", "rules[0].class", "is missing", "The class that"),
    ("limits:", "rules: [{class: core, dag_id: ›3}]\nlimits:", "rules[0].dag_id", "3 is a number", '"3"'),
    ("limits:", "scaling: {horizon: ›1m, prewarm_margin: 40s}\nlimits:", "scaling.horizon", "too late", "further"),
    ("limits:", "scaling: ›{tick_seconds: 40}\nlimits:", "scaling.stale_after", "two ticks", "at least 1m20s"),
    ("limits:", "scaling: ›3\nlimits:", "scaling", "3 is not a mapping", "{scale_in_cooldown: 60s"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "key", "wrong", "right"), CASES, ids=lambda value: value[:24].strip())
def test_place_cause_and_remedy(good_text, old, new, key, wrong, right):
    before, _, after = changed(good_text, old, new).partition("›")
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    mistake = only_mistake(before + after)
    assert (mistake.key, mistake.line, mistake.column) == (key, line, column)
    assert wrong in mistake.wrong
    assert right in mistake.right
    assert str(mistake).startswith(f"capacity.yaml:{line}:{column}: ")


def test_all_mistakes_of_all_kinds_at_once_in_the_files_order(good_text):
    text = changed(good_text, "mode: manage", "mode: 3")  # a wrong type
    text = changed(text, "node_pools: [fixed]", "node_pools: [fixd]")  # a reference
    text = changed(text, "max_nodes: 1\n", "max_nodes: 1\n    max_nodes: 2\n")  # YAML
    text = changed(text, "max_hold: 2h", "max_hold: 2h, max_holds: 3h")  # an unknown key
    text = changed(text, "min_nodes: 1", "min_nodes: 2")  # a pair that contradicts itself
    assert [mistake.key for mistake in mistakes_of(text)] == [
        "mode",
        "node_pools.fixed.min_nodes",
        "node_pools.fixed.max_nodes",
        "classes.core.node_pools[0]",
        "limits.max_holds",
    ]


def test_a_wrong_value_does_not_hide_nor_invent_others(good_text):
    text = changed(good_text, "max_nodes: 1\n", "max_nodes: many\n")
    text = changed(text, "min_nodes: 1", "min_nodes: 9999")  # cannot be judged against 'many'
    assert [mistake.key for mistake in mistakes_of(text)] == ["node_pools.fixed.max_nodes"]


def test_every_mistake_inside_a_shape_has_its_own_place(good_text):
    text = changed(good_text, '{cpu: "4", memory: 8Gi, pods: 20}', "{cpu: x, memory: -1, disk: 3}")
    assert [(mistake.key, mistake.column) for mistake in mistakes_of(text)] == [
        ("node_pools.fixed.shape.cpu", 18),
        ("node_pools.fixed.shape.memory", 29),
        ("node_pools.fixed.shape.disk", 33),
    ]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "empty"),
        ("# only a comment\n", "empty"),
        ("- 1\n", "a list of one item"),
        ("hello", "'hello'"),
        ("42", "42"),
    ],
)
def test_what_is_no_mapping(text, wrong):
    mistake = only_mistake(text)
    assert wrong in mistake.wrong
    assert "version: 1" in mistake.right


def test_long_values_are_echoed_short(good_text):
    mistake = only_mistake(changed(good_text, "mode: manage", "mode: " + "x" * 100_000))
    assert "100,000 characters" in mistake.wrong
    assert len(str(mistake)) < 300


def test_subset_selectors_and_shared_scale_targets_are_named(good_text):
    text = changed(good_text, "{pool: fixed}", "{pool: elastic, zone: a}")
    assert only_mistake(text).wrong == "it takes every node of node pool 'fixed'"
    target = "provider: scale\n    provider_options: {group: g, version: v1, plural: pools, name: one}"
    text = changed(good_text, "provider: none", target)
    text = changed(text, "max_nodes: 6", f"max_nodes: 6\n    {target}")
    assert "scales the same object as node pool 'fixed'" in only_mistake(text).wrong


def test_anchors_and_merge_keys_work(good_text):
    text = changed(
        good_text, 'shape: {cpu: "4", memory: 8Gi, pods: 20}', 'shape: &shape {cpu: "4", memory: 8Gi, pods: 20}'
    )
    text = changed(text, 'shape: {cpu: "4", memory: 8Gi}', "shape: {<<: *shape, pods: 30}")
    elastic = parse_settings(text, "x").node_pool("elastic")
    assert elastic.shape.as_text() == "cpu 4, memory 8Gi, pods 30"


def refused(path):
    with pytest.raises(CapacityFileError) as caught:
        load_settings(path)
    (mistake,) = caught.value.mistakes
    return mistake


def test_files_that_cannot_be_read(tmp_path):
    assert "no such file" in refused(tmp_path / "missing.yaml").wrong
    assert "directory" in refused(tmp_path).wrong
    assert "cannot be read" in refused("a\x00b").wrong
    assert "cannot be read" in refused(tmp_path / ("x" * 5000)).wrong
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    assert "not a regular file" in refused(fifo).wrong
    large = tmp_path / "large.yaml"
    large.write_bytes(b"x" * (5 * 2**20))
    assert "5,242,880 bytes" in refused(large).wrong


def test_bytes_that_are_not_utf8_have_a_place(tmp_path):
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"version: 1\nmode: \xe9\n")
    mistake = refused(path)
    assert (mistake.line, mistake.column) == (2, 7)
    assert "0xe9 is not UTF-8" in mistake.wrong


def test_a_byte_order_mark_is_no_mistake(tmp_path, good_text):
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + good_text.encode())
    assert load_settings(path).source == str(path)


def test_the_error_is_a_configuration_error_that_survives_pickling():
    error = CapacityFileError("f.yaml", (Mistake("f.yaml", 3, 1, "mode", "is wrong", "mend it"),))
    assert isinstance(error, ConfigurationError)
    assert pickle.loads(pickle.dumps(error)).mistakes == error.mistakes
    assert str(error) == "f.yaml cannot be used: 1 mistake\n  f.yaml:3:1: mode: is wrong; mend it"


def test_a_long_list_of_mistakes_is_cut_in_the_message_only():
    text = "version: 1\n" + "".join(f"key{number}: 1\n" for number in range(200))
    with pytest.raises(CapacityFileError, match="… and 152 more") as caught:
        parse_settings(text, "x")
    assert len(caught.value.mistakes) == 202


def test_loading_twice_gives_equal_settings(tmp_path, good_text):
    path = Path(tmp_path, "capacity.yaml")
    path.write_text(good_text)
    assert load_settings(path) == load_settings(str(path))
