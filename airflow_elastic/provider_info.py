"""What Airflow's provider manager is told about us. Standard library only: every Airflow process calls it."""

from __future__ import annotations

from typing import Any

__all__ = ["get_provider_info"]


def get_provider_info() -> dict[str, Any]:
    """Return the provider description: command group, own tables, decorators and every ``[elastic]`` option."""
    return {
        "package-name": "airflow-elastic",
        "name": "Elastic capacity",
        "description": "Makes Airflow aware of the machines below it: pre-warmed Kubernetes nodes, true pool slots.",
        "cli": ["airflow_elastic.cli.definition.get_elastic_cli_commands"],
        "db-managers": ["airflow_elastic.airflow_db.db_manager.ElasticDBManager"],
        "task-decorators": [
            {
                "class-name": "airflow_elastic.decorators.elastic_kubernetes_task",
                "name": "elastic_kubernetes",
            }
        ],
        "config": {
            "elastic": {
                "description": "airflow-elastic: capacity of the machines below Airflow.",
                "options": {
                    "capacity_file": {
                        "description": "Path of the capacity file (YAML). Empty: node pools are discovered from "
                        "well-known node labels and nothing is written anywhere (mode observe).",
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "/opt/airflow/config/capacity.yaml",
                        "default": "",
                    },
                    "controller": {
                        "description": "Where the controller runs: 'scheduler' (started and supervised by the "
                        "scheduler, as a process of its own), 'standalone' (by itself: airflow elastic controller) "
                        "or 'off'.",
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "standalone",
                        "default": "scheduler",
                    },
                    "kubernetes_conn_id": {
                        "description": "Airflow connection for the cluster. Empty: in-cluster configuration, then "
                        "KUBECONFIG.",
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "kubernetes_default",
                        "default": "",
                    },
                },
            }
        },
    }
