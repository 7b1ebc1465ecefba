"""What the live tests do to a running stack, and what they see of it from outside the product."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import psutil

from airflow_elastic.demo.database import Database
from airflow_elastic.demo.stack import Stack


class LiveStack:
    """A running stack with direct access to cluster (official client) and metadata DB (plain SQL)."""

    def __init__(self, stack: Stack) -> None:
        import kubernetes

        self.stack = stack
        self.database: Database = stack.database()
        client = kubernetes.config.new_client_from_config(str(stack.kubeconfig))
        self.core = kubernetes.client.CoreV1Api(client)
        self.custom = kubernetes.client.CustomObjectsApi(client)

    # -- what is --------------------------------------------------------------------------------------------------

    def slots(self, pool: str) -> int | None:
        """Return an Airflow pool's slots, None where it does not exist."""
        rows = self.database.rows("SELECT slots FROM slot_pool WHERE pool = ?", (pool,))
        return int(rows[0][0]) if rows else None

    def nodes(self, pool: str) -> list[Any]:
        """Return the node objects of a pool."""
        return list(self.core.list_node(label_selector=f"airflow-elastic.io/node-pool={pool}").items)

    def ready_nodes(self, pool: str) -> list[str]:
        """Return the names of a pool's nodes that are Ready and not cordoned."""
        return [
            node.metadata.name
            for node in self.nodes(pool)
            if not node.spec.unschedulable
            and any(each.type == "Ready" and each.status == "True" for each in node.status.conditions or [])
        ]

    def desired_nodes(self, pool: str) -> int:
        """Return the number that the cluster's node pool works towards."""
        scale = self.custom.get_cluster_custom_object_scale("embedded.airflow-elastic.io", "v1", "nodepools", pool)
        return int(scale["spec"].get("replicas") or 0)

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        """Return the cluster's own log, of some kinds only."""
        lines = self.stack.event_log.read_text().splitlines()
        return [event for event in map(json.loads, lines) if event["kind"] in kinds]

    def launches(self, pool: str, since: float) -> int:
        """Return how many machines were requested for a pool since a moment (Unix seconds)."""
        return sum(each["pool"] == pool and each["t"] >= since for each in self.events("node_launch_requested"))

    def run_state(self, dag_id: str, run_id: str) -> str:
        """Return a run's state."""
        rows = self.database.rows("SELECT state FROM dag_run WHERE dag_id = ? AND run_id = ?", (dag_id, run_id))
        return str(rows[0][0]) if rows else ""

    def task_rows(self, dag_id: str, run_id: str) -> list[tuple[Any, ...]]:
        """Return (task_id, state, try_number) of a run."""
        return self.database.rows(
            "SELECT task_id, state, try_number FROM task_instance WHERE dag_id = ? AND run_id = ? ORDER BY task_id",
            (dag_id, run_id),
        )

    def active_runs(self, dag_id: str) -> int:
        """Return the number of a DAG's runs that have not ended."""
        rows = self.database.rows(
            "SELECT count(*) FROM dag_run WHERE dag_id = ? AND state IN ('queued', 'running')", (dag_id,)
        )
        return int(rows[0][0])

    def finished_runs(self, dag_id: str) -> int:
        """Return the number of a DAG's runs that have ended."""
        rows = self.database.rows(
            "SELECT count(*) FROM dag_run WHERE dag_id = ? AND state IN ('success', 'failed')", (dag_id,)
        )
        return int(rows[0][0])

    def controllers(self) -> list[psutil.Process]:
        """Return the controller processes of this stack."""
        found = []
        for component in self.stack.components:
            for process in component.tree():
                try:
                    command = process.cmdline()
                except psutil.Error:
                    continue
                if command[-2:] == ["elastic", "controller"]:
                    found.append(process)
        return found

    # -- what is done ---------------------------------------------------------------------------------------------

    def trigger(self, dag_id: str, conf: dict[str, Any] | None = None) -> str:
        """Trigger a run and return its id."""
        body = {"logical_date": datetime.now(UTC).isoformat(), "conf": conf or {}}
        answer = self.stack.api.call("POST", f"/api/v2/dags/{quote(dag_id)}/dagRuns", body)
        return str(answer["dag_run_id"])

    def cordon(self, node: str, cordoned: bool) -> None:
        """Cordon or uncordon a node as an admin does."""
        self.core.patch_node(node, {"spec": {"unschedulable": cordoned}})

    def until(self, condition: Callable[[], Any], timeout_seconds: float, what: str, every_seconds: float = 0.5) -> Any:
        """Wait for a condition and return its value; fail with ``what`` and the state of the stack."""
        deadline = time.monotonic() + timeout_seconds
        while time.monotonic() < deadline:
            self.stack.check()
            if value := condition():
                return value
            time.sleep(every_seconds)
        raise AssertionError(f"not within {timeout_seconds:.0f} s: {what}\n{self.story()}")

    def story(self) -> str:
        """Return what the controller decided lately, for a failure's message."""
        rows = self.database.rows("SELECT at, about, code, sentence FROM elastic_decision ORDER BY id DESC LIMIT 25")
        return "\n".join(" ".join(map(str, row)) for row in rows)
