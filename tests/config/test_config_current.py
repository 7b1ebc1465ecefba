"""The configured file: found, cached, picked up when changed; a broken one keeps the last good settings."""

import os
import subprocess
import sys

import pytest

from airflow_elastic.config import CapacityFileError, WatchedSettings, current, current_settings, load_settings
from airflow_elastic.errors import TemporaryError
from airflow_elastic.model.settings import Mode, Settings

VARIABLE = "AIRFLOW__ELASTIC__CAPACITY_FILE"


@pytest.fixture
def path(tmp_path, good_text):
    path = tmp_path / "capacity.yaml"
    path.write_text(good_text)
    return path


def count_loads(monkeypatch):
    loads = []

    def counted(path):
        loads.append(path)
        return load_settings(path)

    monkeypatch.setattr(current, "load_settings", counted)
    return loads


def test_no_file_is_configured(monkeypatch):
    monkeypatch.setenv(VARIABLE, "")
    assert current_settings() is None


def test_an_unchanged_file_is_read_once(monkeypatch, path):
    monkeypatch.setenv(VARIABLE, str(path))
    loads = count_loads(monkeypatch)
    first = current_settings()
    assert first is current_settings()
    assert first.source == str(path)
    assert len(loads) == 1


def test_a_changed_file_and_another_path_are_read_again(monkeypatch, path, tmp_path, good_text):
    monkeypatch.setenv(VARIABLE, str(path))
    assert current_settings().mode is Mode.MANAGE
    path.write_text(good_text.replace("mode: manage", "mode: sync"))
    assert current_settings().mode is Mode.SYNC
    other = tmp_path / "other.yaml"
    other.write_text(good_text)
    monkeypatch.setenv(VARIABLE, str(other))
    assert current_settings().source == str(other)


def test_a_broken_file_raises_each_time_but_is_read_once(monkeypatch, path):
    path.write_text("version: 7")
    monkeypatch.setenv(VARIABLE, str(path))
    loads = count_loads(monkeypatch)
    errors = []
    for _ in range(2):
        with pytest.raises(CapacityFileError) as caught:
            current_settings()
        errors.append(caught.value)
    assert errors[0].mistakes == errors[1].mistakes
    assert errors[0] is not errors[1]
    assert len(loads) == 1


def test_a_file_that_was_missing_is_found_when_it_comes(monkeypatch, tmp_path, good_text):
    path = tmp_path / "later.yaml"
    monkeypatch.setenv(VARIABLE, str(path))
    with pytest.raises(CapacityFileError, match="no such file"):
        current_settings()
    path.write_text(good_text)
    assert current_settings().node_pool("fixed")


def test_a_swapped_link_is_a_changed_file(monkeypatch, tmp_path, good_text):
    """As Kubernetes does with a mounted ConfigMap: same times and sizes, another file behind the link."""
    for name, mode in (("one", "manage"), ("two", "invent")):
        text = good_text.replace("mode: manage", f"mode: {mode}")
        (tmp_path / name).write_text(text)
        os.utime(tmp_path / name, (1_700_000_000, 1_700_000_000))
    link = tmp_path / "capacity.yaml"
    link.symlink_to(tmp_path / "one")
    monkeypatch.setenv(VARIABLE, str(link))
    assert current_settings() is not None
    link.unlink()
    link.symlink_to(tmp_path / "two")
    with pytest.raises(CapacityFileError, match="'invent' is not known"):
        current_settings()


def test_watched_settings_follow_the_file(path, good_text):
    watched = WatchedSettings(path)
    first = watched.poll()
    assert (first.mode, watched.error) == (Mode.MANAGE, "")
    assert watched.poll() is first
    path.write_text(good_text.replace("mode: manage", "mode: observe"))
    assert watched.poll().mode is Mode.OBSERVE


def test_watched_settings_keep_the_last_good_ones(path, good_text):
    watched = WatchedSettings(path)
    first = watched.poll()
    path.write_text("mode: [")
    assert watched.poll() is first
    assert "the last good one stays in use" in watched.error
    assert str(path) in watched.error
    path.unlink()
    assert watched.poll() is first
    assert "no such file" in watched.error
    path.write_text(good_text.replace("max_nodes: 6", "max_nodes: 7"))
    assert watched.poll().node_pool("elastic").max_nodes == 7
    assert watched.error == ""


def test_a_first_file_that_is_broken_means_doing_nothing(path, good_text):
    path.write_text("mode: manage")
    watched = WatchedSettings(path)
    settings = watched.poll()
    assert (settings.mode, settings.node_pools) == (Mode.OBSERVE, ())
    assert "nothing is done until it is mended" in watched.error
    path.write_text(good_text)
    assert watched.poll().mode is Mode.MANAGE


def test_without_a_file_settings_are_discovered_at_each_poll():
    answers = [Settings(source="one"), TemporaryError("the cluster does not answer"), Settings(source="two")]

    def discover():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    watched = WatchedSettings("", discover)
    assert [(watched.poll().source, watched.error) for _ in range(3)] == [
        ("one", ""),
        ("one", "the cluster does not answer"),
        ("two", ""),
    ]
    assert WatchedSettings("").poll() == Settings()


def run_python(code, **environment):
    environment = {**os.environ, **environment}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_importing_config_and_finding_no_file_loads_nothing_heavy():
    code = (
        "import sys; from airflow_elastic.config import current_settings, parse_run_annotation, resolve_class;"
        "assert current_settings() is None;"
        "print(*(name for name in ('pydantic', 'ruamel.yaml', 'airflow', 'kubernetes') if name in sys.modules))"
    )
    assert run_python(code, **{VARIABLE: ""}) == []


def test_airflows_configuration_is_asked_where_the_environment_is_silent(tmp_path, path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "airflow.cfg").write_text(f"[elastic]\ncapacity_file = {path}\n")
    environment = {key: value for key, value in os.environ.items() if key != VARIABLE}
    code = "from airflow_elastic.config import current_settings; print(current_settings().mode)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**environment, "AIRFLOW_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.split() == ["manage"], done.stderr
