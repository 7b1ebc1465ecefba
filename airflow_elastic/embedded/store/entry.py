"""One version of one object, and the change that made it."""

from __future__ import annotations

import json
from typing import Any

from airflow_elastic.embedded.types import Key, Object

__all__ = ["ADDED", "DELETED", "MODIFIED", "Change", "Entry", "encode"]

ADDED = "ADDED"
MODIFIED = "MODIFIED"
DELETED = "DELETED"

_encoder = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False)


def encode(value: Any) -> bytes:
    """Return compact JSON bytes."""
    return _encoder.encode(value).encode("utf-8", "surrogatepass")


class Entry:
    """A stored version of an object; its JSON bytes are made once, when first needed."""

    __slots__ = ("_json", "key", "obj", "version")

    def __init__(self, key: Key, obj: Object, version: int) -> None:
        self.key = key
        self.obj = obj
        self.version = version
        self._json: bytes | None = None

    @property
    def json(self) -> bytes:
        """Return the object's JSON bytes, shared by every reader and watcher."""
        if self._json is None:
            self._json = encode(self.obj)
        return self._json

    @property
    def labels(self) -> dict[str, str]:
        """Return the object's labels (not to be changed)."""
        return self.obj["metadata"].get("labels") or {}

    @property
    def uid(self) -> str:
        """Return the object's uid."""
        uid: str = self.obj["metadata"]["uid"]
        return uid


class Change:
    """One step in a resource's log."""

    __slots__ = ("_frame", "entry", "previous", "type")

    def __init__(self, type_: str, entry: Entry, previous: Entry | None) -> None:
        self.type = type_
        self.entry = entry
        self.previous = previous
        self._frame: bytes | None = None

    @property
    def frame(self) -> bytes:
        """Return the watch event's line under its own type, encoded once for all watchers."""
        if self._frame is None:
            self._frame = json_frame(self.type, self.entry)
        return self._frame


def json_frame(type_: str, entry: Entry) -> bytes:
    """Return one line of a watch stream."""
    return b'{"type":"' + type_.encode() + b'","object":' + entry.json + b"}\n"
