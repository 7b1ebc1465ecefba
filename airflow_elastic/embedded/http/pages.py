"""Continue tokens: the rest of a list stays a consistent snapshot, since entries are never changed."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict

from airflow_elastic.embedded.http.status import expired
from airflow_elastic.embedded.store.entry import Entry

__all__ = ["Pages"]

_MAX_KEPT = 64
_KEEP_SECONDS = 300.0


class Pages:
    """Keeps what remains of lists that clients read page by page."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[float, int, list[Entry]]] = OrderedDict()

    def keep(self, version: int, entries: list[Entry]) -> str:
        """Keep the rest of a list; returns its continue token."""
        token = secrets.token_urlsafe(18)
        self._kept[token] = (time.monotonic(), version, entries)
        if len(self._kept) > _MAX_KEPT:
            self._kept.popitem(last=False)
        return token

    def take(self, token: str) -> tuple[int, list[Entry]]:
        """Return the version and the rest of a list.

        Raises:
            ApiError: 410, the token is unknown or too old; the client lists again.
        """
        kept = self._kept.get(token)
        if kept is None or time.monotonic() - kept[0] > _KEEP_SECONDS:
            raise expired("The provided continue parameter is too old to display a consistent list result.")
        return kept[1], kept[2]
