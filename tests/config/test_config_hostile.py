"""Whatever a file or an annotation holds: an exact error or settings, never a traceback."""

import math
from itertools import pairwise

import pytest
from config_strategies import as_yaml, files, hostile_values, mutated
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_elastic.config import CapacityFileError, parse_run_annotation, parse_settings, render_capacity_file
from airflow_elastic.model.demand import RunAnnotation
from airflow_elastic.model.settings import Settings

many = settings(
    max_examples=200,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)

INDICATORS = "{}[]:,-#&*!|>'\"%@`?\n\t ~<a1.\u2028\x00\ufeff"


def doubling(first, line):
    """Return a YAML text in which each of eight lines holds the one before nine times."""
    lines = (line.format(name=after, many=f"*{before}," * 9) for before, after in pairwise("abcdefghi"))
    return "\n".join([first, *lines])


def read(text):
    """Return settings or None; an error must be exact."""
    try:
        result = parse_settings(text, "hostile.yaml")
    except CapacityFileError as refusal:
        error = refusal
    else:
        check_sane(result)
        return result
    assert error.mistakes
    for mistake in error.mistakes:
        assert 1 <= mistake.line <= len(text.splitlines()) + 1
        assert mistake.column >= 1
        assert mistake.wrong
        assert mistake.right
        assert len(str(mistake)) < 1500
        assert str(mistake).isprintable()
    assert len(str(error)) < 100_000
    return None


def check_sane(result):
    assert isinstance(result, Settings)
    assert result.node_pools
    assert result.classes
    for pool in result.node_pools:
        assert pool.selector
        assert 0 <= pool.min_nodes <= pool.max_nodes <= 10_000
        assert 0 <= pool.boot_seconds <= pool.boot_seconds_p95
        assert math.isfinite(pool.price_per_node_hour)
        assert pool.shape.get("cpu") > 0
        assert pool.shape.get("pods") > 0
    for each in result.classes:
        pools = [result.node_pool(name) for name in each.node_pools]
        assert all(pools)
        assert any(each.slot_shape.fits_in(pool.shape) for pool in pools)
        assert each.airflow_pool not in ("", "default_pool")
        assert 0 < each.ready_quantile <= 1
    assert result.capacity_class("") is not None
    assert all(result.capacity_class(rule.capacity_class) for rule in result.rules)


@many
@given(files())
def test_sound_files_give_settings_that_survive_rendering(data):
    result = read(as_yaml(data))
    assert result is not None
    assert parse_settings(render_capacity_file(result), "hostile.yaml") == result


@many
@given(mutated())
def test_mutated_files(data):
    result = read(as_yaml(data))
    if result is not None:
        assert parse_settings(render_capacity_file(result), "hostile.yaml") == result


@many
@given(
    st.one_of(st.text(max_size=200), st.text(alphabet="{}[]:,-#&*!|>'\"%@`?\n\t ~<a1.\u2028\x00\ufeff", max_size=80))
)
def test_texts_that_are_hardly_yaml(text):
    assert read(text) is None


@many
@given(
    st.one_of(
        hostile_values,
        st.dictionaries(st.sampled_from(["nodes", "class", "hold", "node", "HOLD", ""]), hostile_values, max_size=4),
        st.dictionaries(st.one_of(st.text(max_size=5), st.integers(), st.none()), hostile_values, max_size=3),
    )
)
def test_hostile_run_annotations(good_settings, raw):
    for known in (good_settings, Settings()):
        result = parse_run_annotation(raw, known)
        assert isinstance(result, RunAnnotation)
        assert len(result.refused) < 2000
        assert result.refused.isprintable()
        assert 0 <= result.nodes <= known.limits.max_nodes
        assert 0 <= result.hold_seconds <= known.limits.max_hold_seconds
        if result.refused:
            assert (result.nodes, result.capacity_class, result.hold_seconds) == (0, "", 0.0)
        if result.capacity_class:
            assert known.capacity_class(result.capacity_class)


@pytest.mark.parametrize(
    "text",
    [
        doubling("a: &a [x,x,x,x,x,x,x,x,x]", "{name}: &{name} [{many}]"),
        doubling("a: &a {k: 1}", "{name}: &{name} {{<<: [{many}]}}"),
        "a: &a [*a]",
        "[" * 100_000,
        "{a: " * 100_000,
        "- " * 100_000,
        "a: *nowhere",
        "a: !!python/object/apply:os.system [true]",
        "version: 1\n---\nversion: 1\n",
        "version: 1\n\tmode: observe\n",
        'version: "\\UFFFFFFFF"',
        "%YAML 9.9\n---\nversion: 1",
        "%TAG ! !\n---\na: !<!> b",
        "? [a, b]\n: c\n",
        "? {a: b}\n: c\n",
        "~: 1\n",
        "*\u2028",
        "a: &a\u2028 *b",
        "version: " + "9" * 5000,
        "x" * (2**20 + 1),
        "version: 1\nnode_pools: {" + "a" * 10**6 + ": 1}",
        "{" + ",".join(f"k{n}: {n}" for n in range(24_000)) + "}",
        "{" + ",".join(f"k{n}: {n}" for n in range(60_000)) + "}",
    ],
    ids=lambda text: text[:18],
)
def test_known_attacks_on_yaml_readers(text):
    assert read(text) is None
