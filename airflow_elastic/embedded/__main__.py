"""``python -m airflow_elastic.embedded``: an embedded cluster in the foreground."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from pathlib import Path

from airflow_elastic.embedded.cluster import EmbeddedCluster
from airflow_elastic.embedded.config import ClusterConfig, NodePoolConfig, load_config
from airflow_elastic.errors import ElasticError

_PARENT_CHECK_SECONDS = 0.5


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m airflow_elastic.embedded",
        description="A Kubernetes cluster in one process; runs until SIGTERM or Ctrl-C.",
    )
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 (the default) takes a free one")
    parser.add_argument("--config", type=Path, help="node pools, YAML or JSON; without it one pool of two nodes")
    parser.add_argument("--kubeconfig", type=Path, help="file to write the kubeconfig to when the cluster is ready")
    parser.add_argument("--event-log", type=Path, help="file to append one JSON line per fact to")
    parser.add_argument("--time-speed", type=float, default=1.0, help="divides the times of machines and autoscalers")
    parser.add_argument("--seed", type=int, default=0, help="seed of the boot times")
    parser.add_argument("--exit-with-parent", action="store_true", help="end when the parent process has ended")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run a cluster; returns the exit code."""
    options = _arguments().parse_args(arguments)
    done = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: done.set())
    parent = os.getppid()
    try:
        if options.config is None:
            config = ClusterConfig(node_pools=(NodePoolConfig("default", initial_nodes=2),))
        else:
            config = load_config(options.config.read_text(encoding="utf-8"))
        cluster = EmbeddedCluster(
            config, event_log=options.event_log, time_speed=options.time_speed, seed=options.seed, port=options.port
        )
        with cluster:
            if options.kubeconfig is not None:
                cluster.write_kubeconfig(options.kubeconfig)
            print(cluster.url, flush=True)  # noqa: T201 - the address is this command's output
            while not done.wait(_PARENT_CHECK_SECONDS):
                if options.exit_with_parent and os.getppid() != parent:
                    break
    except (ElasticError, OSError) as error:
        print(f"embedded cluster: {error}", file=sys.stderr)  # noqa: T201 - a command's error
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
