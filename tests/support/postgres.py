"""A PostgreSQL server of our own in a temporary folder, gone afterwards, however the test ends."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_START_SECONDS = 60.0
_STOP_SECONDS = 15.0
_PR_SET_PDEATHSIG = 1


class PostgresMissing(RuntimeError):
    """There is no PostgreSQL on this machine."""


@contextmanager
def temporary_postgres() -> Iterator[str]:
    """Start a server on a free port of the loopback address; give the SQLAlchemy URL of its empty database.

    Skips the test where PostgreSQL is not installed, but fails it in CI (environment variable CI=true).
    """
    try:
        programs = _programs()
    except PostgresMissing as missing:
        if os.environ.get("CI", "").lower() == "true":
            raise
        pytest.skip(str(missing))
    folder = Path(tempfile.mkdtemp(prefix="elastic-postgres-"))
    server: subprocess.Popen[bytes] | None = None
    try:
        identity = _unprivileged(folder)
        data, log = folder / "data", folder / "log"
        subprocess.run(
            [programs / "initdb", "-D", data, "-U", "airflow", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
            check=True,
            capture_output=True,
            timeout=_START_SECONDS,
            cwd=folder,
            **identity,
        )
        port = _free_port()
        with log.open("wb") as output:
            server = subprocess.Popen(
                [programs / "postgres", "-D", data, "-k", folder, "-h", "127.0.0.1", "-p", str(port),
                 "-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off",
                 "-c", "max_connections=200"],
                stdout=output, stderr=output, cwd=folder, preexec_fn=_die_with_parent, **identity,
            )  # fmt: skip
        _wait_until_it_answers(server, port, log)
        yield f"postgresql+psycopg2://airflow@127.0.0.1:{port}/airflow"
    finally:
        if server is not None:
            _stop(server)
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    """Return the folder of initdb and postgres: the newest of Debian's, else that of the PATH."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]), reverse=True
    )
    on_path = shutil.which("initdb")
    if found:
        return found[0].parent
    if on_path and shutil.which("postgres"):
        return Path(on_path).resolve().parent
    raise PostgresMissing("PostgreSQL is not installed: no initdb in PATH or /usr/lib/postgresql (apt: postgresql)")


def _unprivileged(folder: Path) -> dict[str, Any]:
    """Return how to run the server: PostgreSQL refuses root, so root hands over to the user postgres (or nobody)."""
    if os.geteuid() != 0:
        return {}
    import pwd

    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        os.chown(folder, entry.pw_uid, entry.pw_gid)
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise PostgresMissing("this is root, and there is no user postgres or nobody to run PostgreSQL as")


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_it_answers(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    import psycopg2

    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            connection = psycopg2.connect(host="127.0.0.1", port=port, user="airflow", dbname="postgres")
            break
        except psycopg2.OperationalError:
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start:\n{log.read_text()[-2000:]}") from None
            time.sleep(0.05)
    try:
        connection.autocommit = True
        connection.cursor().execute("CREATE DATABASE airflow")
    finally:
        connection.close()


def _stop(server: subprocess.Popen[bytes]) -> None:
    """Fast shutdown (SIGINT), then immediate (SIGQUIT), then the hard way."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        if server.poll() is not None:
            return
        server.send_signal(number)
        try:
            server.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            continue
