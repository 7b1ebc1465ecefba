"""A Kubernetes cluster in one process: API server, scheduler, kubelets and node pools that boot and remove nodes.

The real clients (kubernetes, kubernetes_asyncio, kubectl, KubernetesPodOperator) use it unmodified over plain HTTP on
127.0.0.1. Pods run as local processes, or last for an annotated time and then cost nothing. Nothing here knows Airflow
or the rest of this package, `errors` and the quantity notation of `model` excepted.
"""

from __future__ import annotations

from airflow_elastic.embedded.cluster import EmbeddedCluster
from airflow_elastic.embedded.config import AutoscalerConfig, ClusterConfig, NodePoolConfig, load_config

__all__ = ["AutoscalerConfig", "ClusterConfig", "EmbeddedCluster", "NodePoolConfig", "load_config"]
