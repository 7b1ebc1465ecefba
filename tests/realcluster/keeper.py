"""The process that a cluster belongs to: brings it up, and takes all of it down when its own parent is gone.

Run as ``python -m realcluster.keeper OPTIONS``. Writes one line of JSON when the cluster is ready. Ends with the end of
its standard input (its parent closed it, or was killed), or by SIGTERM or SIGINT.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from realcluster import leftovers
from realcluster.build import build
from realcluster.fake_nodes import write_fake_nodes
from realcluster.identities import write_identities, write_outside_kubeconfigs
from realcluster.kernel import die_with_parent
from realcluster.layout import ClusterOptions, Layout
from realcluster.pki import write_certificates

__all__ = ["main"]

_START_SECONDS = 120.0
_END_SECONDS = 30.0
# Who did what, of the accounts that tests make: enough to see which rights are used.
_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "userGroups": ["system:masters", "system:nodes", "system:serviceaccounts:kube-system"]},
        {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
        {"level": "None"},
    ],
}


class _Stop(Exception):
    """Somebody wants the cluster to end."""


def main(options: ClusterOptions) -> int:
    """Keep one cluster until the standard input ends."""

    def stop(number: int, frame: object) -> None:
        raise _Stop

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    leftovers.sweep()
    programs = build()
    layout = Layout(Path(tempfile.mkdtemp(prefix=leftovers.FOLDER_PREFIX)), programs)
    # Users of other accounts (a pod's process, nobody) pass through to their own folders.
    layout.root.chmod(0o711)
    failure = ""
    with leftovers.living(layout) as lock:
        child: subprocess.Popen[bytes] | None = None
        try:
            listener = socket.create_server(("127.0.0.1", 0), backlog=256)
            _write_files(layout, options, f"https://127.0.0.1:{listener.getsockname()[1]}")
            child = _start(layout, options, listener.fileno(), lock)
            failure = _wait_until_ready(layout, child)
            if not failure:
                where = {"root": str(layout.root), "programs": str(programs), "pid": child.pid}
                print(json.dumps(where), flush=True)
                _wait_for_the_end(child)
        except _Stop:
            pass
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            if child is not None:
                _end(child)
        leftovers.remove(layout)
    if failure:
        print(failure, file=sys.stderr)
    return 1 if failure else 0


def _write_files(layout: Layout, options: ClusterOptions, url: str) -> None:
    for folder in (layout.logs, layout.pids, layout.holds):
        folder.mkdir()
    write_certificates(layout.pki)
    write_identities(layout, options)
    write_outside_kubeconfigs(layout, url)
    (layout.root / "audit-policy.json").write_text(json.dumps(_AUDIT_POLICY))
    (layout.root / "resolv.conf").write_text("")
    if options.fake_nodes:
        write_fake_nodes(layout)


def _start(layout: Layout, options: ClusterOptions, listener: int, lock: int) -> subprocess.Popen[bytes]:
    arguments = [str(layout.root), str(layout.programs), options.to_json(), str(listener)]
    program = [sys.executable, "-m", "realcluster.inside", *arguments]
    with (layout.logs / "inside.log").open("wb") as log:
        return subprocess.Popen(
            ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", *program],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            # The lock is held as long as anything of the cluster lives, were this process killed.
            pass_fds=(listener, lock),
            preexec_fn=die_with_parent(),
        )


def _wait_until_ready(layout: Layout, child: subprocess.Popen[bytes]) -> str:
    """Return why the cluster did not become ready; empty when it did."""
    deadline = time.monotonic() + _START_SECONDS
    while not layout.ready.exists():
        if child.poll() is not None or time.monotonic() > deadline:
            reason = "ended" if child.poll() is not None else f"was not ready within {_START_SECONDS:.0f} s"
            return f"the real cluster {reason}:\n{(layout.logs / 'inside.log').read_text(errors='replace')[-4000:]}"
        if _input_ended(0.05):
            raise _Stop
    return ""


def _wait_for_the_end(child: subprocess.Popen[bytes]) -> None:
    while child.poll() is None:
        if _input_ended(0.5):
            return


def _input_ended(wait_seconds: float) -> bool:
    descriptor = sys.stdin.fileno()
    return bool(select.select([descriptor], [], [], wait_seconds)[0]) and not os.read(descriptor, 1)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill unshare; process 1 gets the signal from the kernel, and everything below it with it."""
    inner = _children_of(child.pid)
    child.kill()
    child.wait(_END_SECONDS)
    deadline = time.monotonic() + _END_SECONDS
    while any(Path(f"/proc/{pid}").exists() for pid in inner) and time.monotonic() < deadline:
        time.sleep(0.05)


def _children_of(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


if __name__ == "__main__":
    sys.exit(main(ClusterOptions.from_json(sys.argv[1])))
