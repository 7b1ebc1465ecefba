"""Objects in memory: immutable snapshots by key, one change log per resource, watchers that share encoded bytes."""

from __future__ import annotations
