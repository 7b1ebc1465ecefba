from __future__ import annotations

import argparse

import pytest
from rich.console import Group
from rich.table import Table
from rich.text import Text

from airflow_elastic.cli.output import complain, console, emit

STEERING = "\x1b[2J\x1b]0;owned\x07 \x9b31m \x08\x08 \r \u202edlrow\u2066"


def rendered() -> Group:
    table = Table(title=f"title {STEERING}")
    table.add_column(f"column {STEERING}")
    table.add_row(f"plain [/not] [bold]markup[/bold] :smile: {STEERING}")
    table.add_row(Text(f"text {STEERING}"))
    return Group(Text(f"before\nafter {STEERING}"), table)


def test_nothing_that_is_shown_steers_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    emit(argparse.Namespace(output="table"), {}, rendered)
    shown = capsys.readouterr().out
    assert not set(shown) & set("\x1b\x07\x9b\x08\r\u202e\u2066")
    assert "[/not] [bold]markup[/bold] :smile:" in shown
    assert "before\nafter" in shown


def test_styles_of_our_own_still_reach_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("FORCE_COLOR", "1"), ("TERM", "xterm-256color")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    made = console()
    with made.capture() as captured:
        made.print(Text("red\x1b[2J", style="bold red"))
    assert captured.get() == "\x1b[1;31mred\ufffd[2J\x1b[0m\n"


def test_a_complaint_is_plain_text_with_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    complain(f"first\n  second {STEERING}")
    shown = capsys.readouterr().err
    assert shown.startswith("first\n  second ")
    assert shown.endswith("\n")
    assert not set(shown) & set("\x1b\x07\x9b\x08\r\u202e\u2066")
