"""YAML text → plain data in which every key and value knows its place.

Made from ruamel.yaml's events rather than its objects: duplicate keys are all reported, aliases are counted as they
expand (a few lines of them can stand for billions of values), and depth is bounded before recursion is.
"""

from __future__ import annotations

import io
import math
import re
from dataclasses import dataclass, field
from typing import Any

from airflow_elastic.config.mistakes import Mistake, Path, dotted
from airflow_elastic.config.values import printable, shown

__all__ = ["LARGEST_CHARACTERS", "Document", "Place", "read_document", "resolve_plain"]

LARGEST_CHARACTERS = 2**20
_DEEPEST = 16
_MOST_VALUES = 50_000

_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SPECIAL: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}


@dataclass(frozen=True, slots=True)
class Place:
    """Line and column in the text, both from 1."""

    line: int
    column: int


@dataclass(slots=True)
class Document:
    """Plain data with places: ``keys`` where a mapping's key stands, ``values`` where a value begins."""

    source: str
    data: Any = None
    keys: dict[Path, Place] = field(default_factory=dict)
    values: dict[Path, Place] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)

    def place(self, path: Path, *, key: bool = False) -> Place:
        """Return where ``path`` stands (its key or its value), or the nearest thing around it that has a place."""
        for length in range(len(path), 0, -1):
            part = path[:length]
            place = self.keys.get(part) if key and length == len(path) else self.values.get(part)
            place = place or self.keys.get(part)
            if place:
                return place
        return self.values.get((), Place(1, 1))

    def add(self, path: Path, wrong: str, right: str, *, key: bool = False, place: Place | None = None) -> None:
        """Note a mistake at a path."""
        place = place or self.place(path, key=key)
        self.mistakes.append(Mistake(self.source, place.line, place.column, dotted(path), wrong, right))


@dataclass(slots=True)
class _Node:
    kind: str  # "scalar", "mapping" or "sequence"
    place: Place
    value: Any = None
    text: str = ""
    is_plain: bool = False
    items: list[_Node] = field(default_factory=list)  # of a mapping: key, value, key, value, …
    is_open: bool = True


class _Stop(Exception):
    """Reading cannot go on; the mistake is noted."""


def read_document(content: str, source: str) -> Document:
    """Return the data and places of a YAML text; what is wrong with it as YAML stands in ``mistakes``."""
    document = Document(source)
    if len(content) > LARGEST_CHARACTERS:
        document.add((), f"the file has {len(content):,} characters", f"keep it below {LARGEST_CHARACTERS:,}")
        return document
    try:
        root = _compose(content.removeprefix("\ufeff"), document)
        if root is not None:
            document.data = _Builder(document).build(root, (), 0)
    except _Stop:
        document.data = None
    return document


def _compose(content: str, document: Document) -> _Node | None:
    """Return the root node of the only document, None for an empty one; aliases are shared nodes."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.events import (
        AliasEvent,
        DocumentStartEvent,
        MappingEndEvent,
        MappingStartEvent,
        ScalarEvent,
        SequenceEndEvent,
        SequenceStartEvent,
    )

    root: _Node | None = None
    stack: list[_Node] = []
    anchors: dict[str, _Node] = {}
    documents = count = 0
    place = Place(1, 1)
    try:
        for event in YAML(typ="safe", pure=True).parse(io.StringIO(content)):
            place = Place(event.start_mark.line + 1, event.start_mark.column + 1)
            if isinstance(event, DocumentStartEvent):
                documents += 1
                if documents > 1:
                    document.add((), "a second YAML document begins here", "keep one document (no ---)", place=place)
                    raise _Stop
                continue
            if isinstance(event, MappingEndEvent | SequenceEndEvent):
                stack.pop().is_open = False
                continue
            node: _Node | None = None
            if isinstance(event, AliasEvent):
                node = anchors.get(event.anchor)
                if node is None or node.is_open:
                    wrong = "holds itself" if node else "is not defined above"
                    document.add((), f"alias *{printable(event.anchor)} {wrong}", "write the values out", place=place)
                    raise _Stop
            elif isinstance(event, ScalarEvent):
                is_plain = event.style is None and event.tag is None
                value = resolve_plain(event.value) if is_plain else event.value
                node = _Node("scalar", place, value, event.value, is_plain, is_open=False)
            elif isinstance(event, MappingStartEvent | SequenceStartEvent):
                node = _Node("mapping" if isinstance(event, MappingStartEvent) else "sequence", place)
            if node is None:
                continue
            if not isinstance(event, AliasEvent):
                if event.tag is not None and str(event.tag) not in ("tag:yaml.org,2002:str", "!"):
                    document.add((), f"tag {shown(str(event.tag))} has no meaning here", "remove it", place=place)
                if event.anchor is not None:
                    anchors[event.anchor] = node
            count += 1
            if count > _MOST_VALUES or len(stack) >= _DEEPEST:
                wrong = f"more than {_MOST_VALUES:,} values" if count > _MOST_VALUES else "nested too deep"
                document.add((), wrong, "a capacity file is a page or two", place=place)
                raise _Stop
            if stack:
                stack[-1].items.append(node)
            else:
                root = node
            if node.is_open and not isinstance(event, AliasEvent):
                stack.append(node)
    except YAMLError as error:
        _note_syntax(error, content, document)
        raise _Stop from None
    except (ValueError, OverflowError, AttributeError, IndexError, TypeError) as error:
        # The parser's own slips on hostile text (an escape beyond Unicode, a broken directive).
        wrong = f"the text after this cannot be read as YAML ({shown(str(error))})"
        document.add((), wrong, "write plain YAML", place=place)
        raise _Stop from None
    return root


def _note_syntax(error: Any, content: str, document: Document) -> None:
    position = getattr(error, "position", None)
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if isinstance(position, int):
        before = content[:position]
        place = Place(before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1)
        character = f"character U+{ord(content[position]):04X}" if position < len(content) else "a character"
        document.add((), f"{character} is not allowed in YAML", "remove it", place=place)
        return
    place = Place(mark.line + 1, mark.column + 1) if mark is not None else Place(1, 1)
    problem = str(getattr(error, "problem", None) or error).splitlines()[0]
    if "'\\t'" in problem:
        document.add((), "a tab stands where YAML wants spaces", "indent with spaces", place=place)
        return
    context = getattr(error, "context", None)
    said = printable(f"{context}, {problem}" if context else problem, longest=200)
    document.add((), f"not YAML: {said}", "check indentation, colons, quotes and brackets around here", place=place)


def resolve_plain(text: str) -> Any:
    """Return a plain scalar's value by the YAML 1.2 core schema."""
    if text in _SPECIAL:
        return _SPECIAL[text]
    if len(text) <= 400:
        if _INTEGER.fullmatch(text):
            return int(text, 0 if text[:2] in ("0o", "0x") else 10)
        if _FLOAT.fullmatch(text):
            return float(text)
    return text


class _Builder:
    """Turns nodes into data, noting places; counts what aliases expand to."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._count = 0

    def build(self, node: _Node, path: Path, depth: int) -> Any:
        self._spend(node, depth)
        self._document.values.setdefault(path, node.place)
        if node.kind == "scalar":
            return node.value
        if node.kind == "sequence":
            return [self.build(item, (*path, index), depth + 1) for index, item in enumerate(node.items)]
        return self._mapping(node, path, depth)

    def _spend(self, node: _Node, depth: int) -> None:
        self._count += 1
        if self._count > _MOST_VALUES or depth > _DEEPEST:
            wrong = f"aliases expand to more than {_MOST_VALUES:,} values or {_DEEPEST} levels"
            self._document.add((), wrong, "write the values out", place=node.place)
            raise _Stop

    def _mapping(self, node: _Node, path: Path, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        merged: list[_Node] = []
        for key_node, value_node in zip(node.items[::2], node.items[1::2], strict=True):
            if key_node.kind != "scalar" or key_node.value is None:
                self._document.add(path, "a key is not a name", "write a name before the colon", place=key_node.place)
                continue
            key = key_node.text
            if key == "<<" and key_node.is_plain:
                merged += value_node.items if value_node.kind == "sequence" else [value_node]
                continue
            child = (*path, key)
            if key in result:
                first = self._document.keys[child]
                self._document.add(child, f"the key is there twice (first in line {first.line})", "keep one of them",
                                   place=key_node.place)  # fmt: skip
                continue
            self._document.keys.setdefault(child, key_node.place)
            result[key] = self.build(value_node, child, depth + 1)
        for other in merged:
            if other.kind != "mapping":
                self._document.add(path, "<< takes in what is not a mapping", "write an alias of a mapping",
                                   place=other.place)  # fmt: skip
                continue
            self._spend(other, depth)
            for key, value in self._mapping(other, path, depth + 1).items():
                result.setdefault(key, value)
        return result
