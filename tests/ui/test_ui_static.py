"""The page's files: complete, self-contained, and without a way to make markup out of foreign text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import airflow_elastic.ui

UI = Path(airflow_elastic.ui.__file__).parent
SCRIPTS = sorted((UI / "static" / "js").glob("*.js"))
STYLES = sorted((UI / "static" / "css").glob("*.css"))
PAGE = UI / "pages" / "index.html"
SVG_NAMESPACE = "http://www.w3.org/2000/svg"


def test_there_is_something_to_check() -> None:
    assert len(SCRIPTS) >= 10
    assert len(STYLES) >= 3


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_no_script_makes_markup_or_code_from_text(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "srcdoc"):
        assert way not in text, way


@pytest.mark.parametrize("path", [*SCRIPTS, *STYLES, PAGE], ids=lambda path: path.name)
def test_nothing_is_fetched_from_elsewhere(path: Path) -> None:
    addresses = set(re.findall(r"(?:https?:)?//[\w.-]+\.[a-z]{2,}[\w/.-]*", path.read_text(encoding="utf-8")))
    assert addresses <= {SVG_NAMESPACE}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_every_imported_module_and_name_exists(path: Path) -> None:
    for names, module in re.findall(r'import \{([^}]*)\} from "([^"]+)"', path.read_text(encoding="utf-8")):
        source = (path.parent / module).read_text(encoding="utf-8")
        exported = set(re.findall(r"export (?:async )?(?:function|const|class|let) (\w+)", source))
        assert {name.strip() for name in names.split(",") if name.strip()} <= exported, module


def test_the_page_is_without_inline_code_or_style_so_that_its_policy_holds() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert not re.search(r"<script(?![^>]*\bsrc=)", text)
    assert "<style" not in text
    assert not re.search(r"\s(on\w+|style)=", text)


def test_every_file_that_the_page_names_exists() -> None:
    named = re.findall(r'(?:href|src)="(static/[^"]+)"', PAGE.read_text(encoding="utf-8"))
    assert named
    for name in named:
        assert (UI / name).is_file(), name


def test_every_element_that_scripts_ask_for_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    asked = set()
    for path in SCRIPTS:
        asked |= set(re.findall(r'(?:getElementById|\bat)\("([\w-]+)"\)', path.read_text(encoding="utf-8")))
    assert len(asked) > 12
    for name in asked:
        assert f'id="{name}"' in page, name


def test_both_themes_define_the_same_colours() -> None:
    text = (UI / "static" / "css" / "tokens.css").read_text(encoding="utf-8")
    light, dark = text.split(':root[data-theme="dark"]')
    shared = {"--radius", "--font", "--mono"}
    assert set(re.findall(r"(--[\w-]+):", light)) - shared == set(re.findall(r"(--[\w-]+):", dark))
    used = set(re.findall(r"var\((--[\w-]+)\)", "".join(path.read_text(encoding="utf-8") for path in STYLES)))
    assert used - {"--w", "--x"} <= set(re.findall(r"(--[\w-]+):", light))
