"""The same DAGs without us: plain KubernetesPodOperator, static pool slots, a reactive autoscaler on every pool."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from airflow_elastic.demo.variant import Variant

__all__ = ["baseline_variant"]

_OUR_IMPORT = "from airflow_elastic import ElasticKubernetesPodOperator"
_THEIR_IMPORT = "from plain_pods import PlainPods as ElasticKubernetesPodOperator"
_PLAIN_PODS = '''"""KubernetesPodOperator with what people write by hand: pool, node selector, time to boot."""

from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator

PLACES = THE_PLACES
IDENTITY = {  # only for the reporter
    "airflow-elastic.io/dag-id": "{{ ti.dag_id }}",
    "airflow-elastic.io/run-id": "{{ run_id }}",
    "airflow-elastic.io/task-id": "{{ ti.task_id }}",
    "airflow-elastic.io/map-index": "{{ ti.map_index }}",
}


class PlainPods(KubernetesPodOperator):
    def __init__(self, *, capacity_class, annotations=None, **kwargs):
        pool, node_pool = PLACES[capacity_class]
        kwargs.setdefault("pool", pool)
        super().__init__(
            annotations={**IDENTITY, **(annotations or {})},
            node_selector={"airflow-elastic.io/node-pool": node_pool},
            deferrable=True,
            startup_timeout_seconds=600,
            schedule_timeout_seconds=600,
            **kwargs,
        )
'''


def baseline_variant(ours: Variant) -> Variant:
    """Return the baseline of a variant: same DAG shape, same machines, no capacity file.

    Each Airflow pool's slots are what its node pool holds at its maximum: what people set, since less would hold tasks
    back although the autoscaler could bring nodes.
    """
    classes, node_pools = ours.capacity["classes"], ours.capacity["node_pools"]
    places = {name: (each["airflow_pool"], each["node_pools"][0]) for name, each in classes.items()}
    return Variant(
        name="plain",
        cluster=_reactive(ours.cluster),
        capacity=ours.capacity,
        dag_files={
            **{name: text.replace(_OUR_IMPORT, _THEIR_IMPORT) for name, text in ours.dag_files.items()},
            "plain_pods.py": _PLAIN_PODS.replace("THE_PLACES", repr(places)),
            ".airflowignore": "plain_pods.py\n",
        },
        controller="off",
        static_pools={
            each["airflow_pool"]: int(node_pools[each["node_pools"][0]]["max_nodes"])
            * _slots_per_node(node_pools[each["node_pools"][0]]["shape"], each["slot_shape"])
            for each in classes.values()
        },
    )


def _reactive(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cluster with the autoscaler that one of its pools has on every pool that can grow."""
    changed = copy.deepcopy(dict(cluster))
    autoscaler = next(pool["autoscaler"] for pool in changed["node_pools"] if "autoscaler" in pool)
    for pool in changed["node_pools"]:
        if pool.get("min_nodes", 0) < pool["max_nodes"]:
            pool["autoscaler"] = dict(autoscaler)
    return changed


def _slots_per_node(shape: Mapping[str, Any], slot_shape: Mapping[str, Any]) -> int:
    from airflow_elastic.model.resources import Resources

    return Resources.parse(slot_shape).how_often_in(Resources.parse(shape))
