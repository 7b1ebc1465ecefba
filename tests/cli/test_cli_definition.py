"""The command group: declared in full, cheap to import, one message and exit code for each kind of error."""

import argparse
import importlib
import os
import pkgutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from airflow_elastic.cli import commands, runner
from airflow_elastic.cli.definition import get_elastic_cli_commands
from airflow_elastic.config import CapacityFileError, Mistake
from airflow_elastic.errors import ConfigurationError, Impossible, TemporaryError

COMMANDS = {"init", "validate", "status", "plan", "explain", "controller", "demo", "simulate"}


@pytest.fixture(scope="module")
def parser():
    """Return Airflow's own parser, which found the group through the provider's entry point."""
    from airflow.cli import cli_parser

    return cli_parser.get_parser()


def declared():
    (group,) = get_elastic_cli_commands()
    assert group.name == "elastic"
    return {command.name: command for command in group.subcommands}


def test_every_command_is_declared_and_has_its_module():
    modules = {module.name for module in pkgutil.iter_modules(commands.__path__)}
    assert set(declared()) == COMMANDS == modules
    for name in COMMANDS:
        assert callable(importlib.import_module(f"airflow_elastic.cli.commands.{name}").run)


def test_every_command_has_help_and_an_output_format():
    for command in declared().values():
        assert command.help
        # rich-argparse takes square brackets for markup and drops them.
        for text in (command.help, command.description or "", *(each.kwargs["help"] for each in command.args)):
            assert "[" not in text
        assert any("--output" in each.flags for each in command.args)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["validate"], {"file": None, "schema": False, "output": "table"}),
        (["validate", "a.yaml", "--schema", "-o", "json"], {"file": "a.yaml", "schema": True, "output": "json"}),
        (["init", "--write", "a.yaml", "--force"], {"write": "a.yaml", "force": True}),
        (["status", "--watch"], {"watch": True}),
        (["plan", "--output", "json"], {"output": "json"}),
        (["explain", "my_dag"], {"subject": ["my_dag"]}),
        (["explain", "my_dag", "my_run"], {"subject": ["my_dag", "my_run"]}),
        (["controller", "--once"], {"once": True}),
        (["demo"], {"once": False, "port": 0, "speed": 1.0, "keep": None}),
        (
            ["demo", "--once", "--port", "8081", "--speed", "10", "--keep", "d"],
            {"port": 8081, "speed": 10.0, "keep": "d"},
        ),
    ],
)
def test_airflows_parser_reads_the_commands(parser, words, expected):
    args = vars(parser.parse_args(["elastic", *words]))
    assert {key: args[key] for key in expected} == expected
    assert args["func"].__name__ == f"elastic_{words[0]}"


@pytest.mark.parametrize(
    "words", [["explain"], ["demo", "--port", "70000"], ["demo", "--speed", "0"], ["plan", "-o", "xml"], ["no-such"]]
)
def test_wrong_arguments_are_refused(parser, words, capsys):
    with pytest.raises(SystemExit) as caught:
        parser.parse_args(["elastic", *words])
    assert caught.value.code == 2


def raising(monkeypatch, error):
    def run(args):
        raise error

    monkeypatch.setattr(runner, "import_module", lambda name: SimpleNamespace(run=run))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigurationError("the option is wrong; mend it"), 1),
        (Impossible("no node can hold it; ask for less"), 1),
        (CapacityFileError("f.yaml", (Mistake("f.yaml", 1, 1, "mode", "is wrong", "mend it"),)), 1),
        (TemporaryError("the cluster does not answer; try again"), 2),
    ],
)
def test_our_errors_are_one_message_and_an_exit_code(monkeypatch, capsys, error, code):
    raising(monkeypatch, error)
    with pytest.raises(SystemExit) as caught:
        runner.run_command("plan", argparse.Namespace())
    assert caught.value.code == code
    assert capsys.readouterr() == ("", f"{error}\n")


def test_an_interrupt_ends_quietly(monkeypatch, capsys):
    raising(monkeypatch, KeyboardInterrupt())
    with pytest.raises(SystemExit) as caught:
        runner.run_command("status", argparse.Namespace())
    assert caught.value.code == 130
    assert capsys.readouterr() == ("", "")


def test_a_bug_is_not_hidden(monkeypatch):
    raising(monkeypatch, KeyError("a bug"))
    with pytest.raises(KeyError, match="a bug"):
        runner.run_command("status", argparse.Namespace())


def test_the_definition_imports_nothing_of_its_own():
    code = (
        "import sys, airflow.cli.cli_config; before = set(sys.modules);"
        "import airflow_elastic.cli.definition as d; d.get_elastic_cli_commands();"
        "print(*set(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    # Airflow may have loaded the package before, for its policies.
    assert set(done.stdout.split()) - {"airflow_elastic"} == {"airflow_elastic.cli", "airflow_elastic.cli.definition"}


def airflow(*words):
    """Run the real command line."""
    return subprocess.run(
        [sys.executable, "-m", "airflow", "elastic", *words],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "AIRFLOW__ELASTIC__CAPACITY_FILE": "", "COLUMNS": "120"},
    )


def test_the_real_command_line_shows_the_group():
    done = airflow("--help")
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in COMMANDS)


def test_the_real_command_line_refuses_without_a_traceback(tmp_path):
    done = airflow("validate", str(tmp_path / "missing.yaml"))
    assert done.returncode == 1
    assert "there is no such file" in done.stdout
    assert "Traceback" not in done.stderr
    done = airflow("validate")
    assert done.returncode == 1
    assert "No capacity file" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_reader_that_leaves_early_causes_no_complaint():
    done = subprocess.run(
        f"{sys.executable} -m airflow elastic validate --schema | head -c 1; echo ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.startswith("{")
    assert "Traceback" not in done.stderr
    assert "BrokenPipeError" not in done.stderr
