"""The harness by hand: build the programs, have a cluster until Ctrl-C, run commands inside."""

from __future__ import annotations

import argparse
import json
import sys
import time

from realcluster.build import BuildError, build, missing_for_run
from realcluster.cluster import RealCluster, RealClusterError
from realcluster.layout import ClusterOptions

__all__ = ["main"]


def main() -> int:
    """Run one command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python tests/realcluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build all programs into the cache folder (20 minutes, once)")
    up = commands.add_parser("up", help="start a cluster and keep it until Ctrl-C, or while a command runs inside")
    up.add_argument("--real-nodes", type=int, default=1, help="nodes with a kubelet and containerd (default 1)")
    up.add_argument("--karpenter", action="store_true", help="start Karpenter with its simulated machines")
    up.add_argument("inside", nargs="*", help="a command to run inside; the cluster ends with it")
    arguments = parser.parse_args()
    try:
        if arguments.command == "build":
            print(build())
            return 0
        if missing := missing_for_run():
            raise RealClusterError(missing)
        return _up(ClusterOptions(arguments.real_nodes, karpenter=arguments.karpenter), arguments.inside)
    except (BuildError, RealClusterError) as error:
        print(error, file=sys.stderr)
        return 1


def _up(options: ClusterOptions, command: list[str]) -> int:
    with RealCluster(options) as cluster:
        try:
            if command:
                return cluster.popen(command).wait()
            print(json.dumps(cluster.start_seconds))
            print(
                f"KUBECONFIG={cluster.kubeconfig()}\nlogs in {cluster.layout.logs}; Ctrl-C ends the cluster", flush=True
            )
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            return 0
