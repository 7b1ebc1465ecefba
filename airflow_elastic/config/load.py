"""Reading a capacity file: text → document → models → settings, with every mistake of all stages at once."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_elastic.config.document import LARGEST_CHARACTERS, Document, read_document
from airflow_elastic.config.mistakes import MOST_KEPT, CapacityFileError, Mistake
from airflow_elastic.config.values import SeveralWrong, Wrong, shown, suggestion
from airflow_elastic.model.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["json_schema", "load_settings", "parse_settings"]

_FIRST_LINES = "begin with 'version: 1', then node_pools and classes (airflow elastic init proposes a file)"


def load_settings(path: str | Path) -> Settings:
    """Read a capacity file.

    Raises:
        CapacityFileError: the file is missing, cannot be read or holds mistakes; all of them are listed.
    """
    source = str(path)
    return parse_settings(_read_text(Path(path), source), source)


def parse_settings(text: str, source: str) -> Settings:
    """Return the settings that a capacity file's text stands for; ``source`` names it in messages.

    Raises:
        CapacityFileError: with every mistake of the text, in its order.
    """
    document = read_document(text, source)
    settings = None
    if document.data is None:
        if not document.mistakes:
            document.add((), "the file is empty", _FIRST_LINES)
    elif not isinstance(document.data, dict):
        document.add((), f"the file holds {shown(document.data)}, not a mapping", _FIRST_LINES)
    else:
        settings = _validate(document)
    if document.mistakes or settings is None:
        in_order = sorted(set(document.mistakes), key=lambda mistake: (mistake.line, mistake.column, mistake.key))
        raise CapacityFileError(source, tuple(in_order[:MOST_KEPT]))
    return settings


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of the capacity file, for editors."""
    from airflow_elastic.config.schema import CapacityFile

    schema = CapacityFile.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _read_text(path: Path, source: str) -> str:
    def fail(wrong: str, right: str, line: int = 0, column: int = 0) -> CapacityFileError:
        return CapacityFileError(source if len(source) < 300 else source[:297] + "…",
                                 (Mistake(source[:300], line, column, "", wrong, right),))  # fmt: skip

    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise fail("it is a directory", "name the capacity file in it")
        if not stat.S_ISREG(status.st_mode):
            raise fail("it is not a regular file", "name a YAML file")
        if status.st_size > 4 * LARGEST_CHARACTERS:
            raise fail(f"it has {status.st_size:,} bytes", f"keep it below {LARGEST_CHARACTERS:,}")
        content = path.read_bytes()
    except FileNotFoundError:
        raise fail("there is no such file", "mend the path, or let airflow elastic init --write make one") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise fail(f"it cannot be read: {reason}", "mend the path or the file's permissions") from None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line, column = before.count(b"\n") + 1, error.start - (before.rfind(b"\n") + 1) + 1
        wrong = f"byte 0x{content[error.start]:02x} is not UTF-8"
        raise fail(wrong, "save the file as UTF-8", line, column) from None


def _validate(document: Document) -> Settings | None:
    from pydantic import ValidationError

    from airflow_elastic.config.convert import to_settings
    from airflow_elastic.config.cross_checks import check_references
    from airflow_elastic.config.schema import CapacityFile

    model = None
    try:
        model = CapacityFile.model_validate(document.data)
    except ValidationError as error:
        for each in error.errors(include_url=False, include_input=False)[:MOST_KEPT]:
            _note(each, document)
    check_references(document)
    return to_settings(model, document.source) if model is not None and not document.mistakes else None


def _note(error: Mapping[str, Any], document: Document) -> None:
    """Turn one of pydantic's errors into mistakes with a place, a cause and a remedy."""
    from airflow_elastic.config.schema import fields_of, model_at

    path = tuple(error["loc"])
    is_key = bool(path) and path[-1] == "[key]"
    path = path[:-1] if is_key else path
    cause = (error.get("ctx") or {}).get("error")
    if isinstance(cause, SeveralWrong):
        for key, problem in cause.problems:
            document.add((*path, key) if key else path, problem.wrong, problem.right, key=problem.is_key)
    elif isinstance(cause, Wrong):
        document.add(path, cause.wrong, cause.right, key=is_key)
    elif error["type"] == "extra_forbidden":
        owner = model_at(path[:-1])
        document.add(path, "unknown key", suggestion(path[-1], fields_of(owner) if owner else ()), key=True)
    elif error["type"] == "missing":
        owner = model_at(path[:-1])
        field = fields_of(owner).get(str(path[-1])) if owner else None
        document.add(path, "is missing", f"add it: {_plain(field.description if field else '')}", key=True)
    else:
        value = _value_at(document.data, path)
        kind = "a list" if error["type"] == "list_type" else "a mapping"
        owner = model_at(path)
        above = model_at(path[:-1]) if path else None
        field = fields_of(above).get(str(path[-1])) if above else None
        help_text = owner.__doc__ if owner else (field.description if field is not None else "")
        document.add(path, f"{shown(value)} is not {kind}", f"write {kind}: {_plain(help_text)}")


def _plain(text: str | None) -> str:
    return " ".join((text or "").replace("`", "").split()).rstrip(".")


def _value_at(data: Any, path: tuple[str | int, ...]) -> Any:
    for part in path:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return None
    return data
