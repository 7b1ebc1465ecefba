"""Which capacity file an installation uses, and how a changed one is picked up without a restart."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from airflow_elastic.config.load import load_settings
from airflow_elastic.config.mistakes import CapacityFileError
from airflow_elastic.errors import ElasticError
from airflow_elastic.model.settings import Settings

__all__ = ["CAPACITY_FILE_VARIABLE", "WatchedSettings", "configured_path", "current_settings"]

CAPACITY_FILE_VARIABLE = "AIRFLOW__ELASTIC__CAPACITY_FILE"

Fingerprint = tuple[int, int, int] | None


def configured_path() -> str:
    """Return the path of the configured capacity file, or an empty string when none is configured.

    The environment is looked at first: a parse step then need not import Airflow's configuration.
    """
    path = os.environ.get(CAPACITY_FILE_VARIABLE)
    if path is None:
        from airflow.configuration import conf

        path = conf.get("elastic", "capacity_file", fallback="")
    return str(path or "").strip()


def _fingerprint(path: str) -> Fingerprint:
    """Return what changes when a file does (a mounted ConfigMap swaps a link: inode), None where there is none."""
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


_cached: tuple[str, Fingerprint, Settings | CapacityFileError] | None = None


def current_settings() -> Settings | None:
    """Return the settings of the configured capacity file, read again only when the file has changed.

    None when no file is configured. Costs one ``stat`` when nothing has changed.

    Raises:
        CapacityFileError: the file is missing or holds mistakes.
    """
    global _cached
    path = configured_path()
    if not path:
        return None
    now = _fingerprint(path)
    if _cached is None or _cached[:2] != (path, now):
        try:
            _cached = (path, now, load_settings(path))
        except CapacityFileError as error:
            _cached = (path, now, error)
    result = _cached[2]
    if isinstance(result, CapacityFileError):
        # A new object: raising one and the same again would grow its traceback without end.
        raise CapacityFileError(result.source, result.mistakes)
    return result


class WatchedSettings:
    """Settings of a long-running process: a changed file is picked up, a broken one keeps the last good settings.

    Without a path, ``discover`` is asked at each poll; without either, the settings are empty (mode observe).
    """

    def __init__(self, path: str | Path, discover: Callable[[], Settings] | None = None) -> None:
        self.path = str(path).strip()
        self._discover = discover
        self._fingerprint: Fingerprint = (-1, -1, -1)
        self._good = Settings(source=self.path)
        self.error = ""
        """Why the latest file (or discovery) is not used; empty: it is."""

    def poll(self) -> Settings:
        """Return the latest good settings; never raises for a broken file, but says so in ``error``.

        Before there ever was a good file they are empty and in mode observe: nothing is done until it is mended.
        """
        if self.path:
            self._poll_file()
        elif self._discover is not None:
            try:
                self._good, self.error = self._discover(), ""
            except ElasticError as error:
                self.error = str(error)
        return self._good

    def _poll_file(self) -> None:
        now = _fingerprint(self.path)
        if now == self._fingerprint:
            return
        self._fingerprint = now
        try:
            self._good, self.error = load_settings(self.path), ""
        except CapacityFileError as error:
            kept = "the last good one stays in use" if self._good.node_pools else "nothing is done until it is mended"
            self.error = f"{error}\n  ({kept})"
