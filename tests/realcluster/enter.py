"""Runs a command inside a cluster: ``python -m realcluster.enter PID COMMAND …``, PID being its process 1."""

from __future__ import annotations

import os
import signal
import sys

from realcluster.kernel import die_with_parent, enter_namespace

__all__ = ["main"]


def main(pid: int, command: list[str]) -> int:
    """Run the command in the network, mount and process namespaces; signals and exit code are handed on."""
    folder = os.getcwd()  # noqa: PTH109 (the path, to be found again in the other mount namespace)
    descriptors = [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY) for kind in ("net", "mnt", "pid")]
    for descriptor in descriptors:
        enter_namespace(descriptor)
        os.close(descriptor)
    child = os.fork()
    if child == 0:
        die_with_parent()()
        try:
            os.chdir(folder)
            os.execvp(command[0], command)
        except OSError as error:
            print(f"{command[0]}: {error.strerror}", file=sys.stderr)
            os._exit(127)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda received, frame: os.kill(child, received))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
