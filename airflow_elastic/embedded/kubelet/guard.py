"""Ends the pods' processes when the cluster itself is killed and cannot do so."""

from __future__ import annotations

import subprocess
from pathlib import Path

__all__ = ["ProcessGuard"]

# Reads "+ PID" and "- PID"; when its input ends, the cluster is gone, and what is still listed is killed by process
# group. A shell, since it has to cost nothing.
_SCRIPT = """
pids=" "
while read -r sign pid; do
  case "$sign" in
    +) pids="$pids$pid " ;;
    -) case "$pids" in *" $pid "*) pids="${pids%% $pid *} ${pids#* $pid }" ;; esac ;;
  esac
done
for pid in $pids; do kill -s KILL -- "-$pid" 2>/dev/null; done
rm -rf -- "$1"
"""


class ProcessGuard:
    """One small process beside the cluster, started with the first pod that runs a process."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def add(self, pid: int, root: Path) -> None:
        """Have a process group ended with the cluster; ``root`` is the pods' directory, removed then too."""
        if self._process is None:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT, "airflow-elastic-guard", str(root)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # Ctrl-C in a terminal goes to the whole foreground group; the guard has to outlive the cluster.
                start_new_session=True,
                bufsize=0,
            )
        self._tell("+", pid)

    def drop(self, pid: int) -> None:
        """Forget a process group that has ended."""
        self._tell("-", pid)

    def stop(self) -> None:
        """Let the guard end what is left, and itself."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _tell(self, sign: str, pid: int) -> None:
        if self._process is None or self._process.stdin is None:
            return
        try:
            self._process.stdin.write(f"{sign} {pid}\n".encode())
        except OSError:
            # Somebody ended the guard: the pods run on unguarded, which is better than not at all.
            self._process = None
