"""Whether a measured demo kept what the product promises."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

__all__ = ["MAX_PHANTOM_SHARE", "complaints"]

MAX_PHANTOM_SHARE = 0.01
"""Of the slot-seconds."""


def complaints(
    report: Mapping[str, Any], min_nodes: Mapping[str, int], unfinished: list[str], runs_of_each: int
) -> list[str]:
    """Return what was promised and not kept, one sentence each; empty: all is well."""
    detail = report["detail"]
    found = [f"not finished in time: {each}" for each in unfinished]
    if report["failed_tasks"]:
        found.append(f"{report['failed_tasks']} tasks failed")
    found.extend(f"{run['dag_id']} {run['run_id']} failed" for run in detail["runs"] if run["state"] != "success")
    if report["phantom_slot_seconds"] > MAX_PHANTOM_SHARE * detail["slot_seconds"]:
        found.append(
            f"{report['phantom_slot_seconds']} phantom slot-seconds are more than {MAX_PHANTOM_SHARE:.0%} of "
            f"{detail['slot_seconds']} slot-seconds"
        )
    by_dag: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for run in detail["runs"]:  # in order of time
        by_dag[run["dag_id"]].append(run)
    for dag_id, runs in by_dag.items():
        for run in runs[1:runs_of_each]:
            if run["cold_tasks"]:
                found.append(f"{dag_id}: its second run had cold tasks: {', '.join(run['cold_tasks'])}")
            if not run["prewarmed"]:
                found.append(f"{dag_id}: its second run was not pre-warmed")
    if not unfinished:
        for pool, minimum in min_nodes.items():
            nodes = detail["node_pools"][pool]["nodes_end"]
            if nodes != minimum:
                found.append(f"node pool {pool} ends with {nodes} nodes, its minimum is {minimum}")
        if report["placeholders_end"]:
            found.append(f"{report['placeholders_end']} placeholder pods are left")
    return found
