"""The reactive autoscaler."""

from __future__ import annotations

from embedded_helpers import Api, cluster_of, until

from airflow_elastic.embedded import AutoscalerConfig, NodePoolConfig

QUICK = AutoscalerConfig(scan_seconds=10, empty_seconds=100_000)


def pool(name: str = "burst", **options: object) -> NodePoolConfig:
    settings: dict[str, object] = {"autoscaler": QUICK, "max_nodes": 5, "boot_seconds_median": 40, **options}
    return NodePoolConfig(name, **settings)  # type: ignore[arg-type]


def desired(api: Api, name: str = "burst") -> int:
    return int(api.pool(name)["spec"]["replicas"])


def test_nodes_for_waiting_pods_and_no_more() -> None:
    with cluster_of(pool()) as cluster:
        api = Api(cluster)
        for number in range(6):
            api.create(f"p{number}", cpu="1500m", run_seconds=60)
        for number in range(6):
            api.until_phase(f"p{number}", "Running")
        # Two pods fit on a node of four cores; booting nodes are counted, so nothing is asked for twice.
        assert desired(api) == 3
        message = dict(api.events("p0"))["TriggeredScaleUp"]
        assert message.startswith("pod triggered scale-up: [{burst 0->")
        assert message.endswith("(max: 5)}]")
        api.close()


def test_what_no_node_can_hold_brings_none() -> None:
    with cluster_of(pool()) as cluster:
        api = Api(cluster)
        api.create("wide", cpu="64", run_seconds=60)
        api.create("elsewhere", nodeSelector={"disk": "ssd"}, run_seconds=60)
        until(lambda: "NotTriggerScaleUp" in api.reasons("wide") and "NotTriggerScaleUp" in api.reasons("elsewhere"))
        messages = dict(api.events("wide")) | {"elsewhere": dict(api.events("elsewhere"))["NotTriggerScaleUp"]}
        assert messages["NotTriggerScaleUp"] == "pod didn't trigger scale-up: 1 Insufficient cpu"
        assert "didn't match Pod's node affinity/selector" in messages["elsewhere"]
        assert desired(api) == 0
        api.close()


def test_the_largest_size_is_kept() -> None:
    with cluster_of(pool(max_nodes=2)) as cluster:
        api = Api(cluster)
        for number in range(4):
            api.create(f"p{number}", cpu="4", run_seconds=60)
        refusal = ("NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached")
        until(lambda: any(refusal in api.events(f"p{n}") for n in range(4)))
        assert desired(api) == 2
        api.close()


def test_expendable_pods_bring_no_nodes() -> None:
    with cluster_of(pool()) as cluster:
        api = Api(cluster)
        api.priority_class("expendable", -11)
        api.priority_class("placeholder", -10)
        api.create("a", priorityClassName="expendable", run_seconds=60)
        api.create("wide", cpu="64", run_seconds=60)
        until(lambda: "NotTriggerScaleUp" in api.reasons("wide"))
        assert desired(api) == 0
        api.create("b", priorityClassName="placeholder", labels={"airflow-elastic.io/placeholder": "r"})
        api.until_phase("b", "Running")
        assert desired(api) == 1
        api.close()


def test_the_pool_that_fits_is_chosen() -> None:
    spot = pool("spot", taints=[{"key": "spot", "effect": "NoSchedule"}])
    with cluster_of(spot, pool("gpu", allocatable={"nvidia.com/gpu": "1"}, labels={"gpu": "yes"})) as cluster:
        api = Api(cluster)
        resources = {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}
        api.create("g", container={"resources": resources}, run_seconds=60)
        api.until_phase("g", "Running")
        assert (desired(api, "spot"), desired(api, "gpu")) == (0, 1)
        api.create(
            "s",
            tolerations=[{"key": "spot", "operator": "Exists"}],
            nodeSelector={"airflow-elastic.io/node-pool": "spot"},
            run_seconds=60,
        )
        api.until_phase("s", "Running")
        assert (desired(api, "spot"), desired(api, "gpu")) == (1, 1)
        api.close()


def test_empty_nodes_go_after_a_while_down_to_the_least() -> None:
    config = pool(min_nodes=1, initial_nodes=3, autoscaler=AutoscalerConfig(scan_seconds=10, empty_seconds=50))
    with cluster_of(config) as cluster:
        api = Api(cluster)
        until(lambda: len(api.node_names()) == 1)
        assert desired(api) == 1
        api.close()


def test_busy_and_held_nodes_stay() -> None:
    config = pool(initial_nodes=4, autoscaler=AutoscalerConfig(scan_seconds=50, empty_seconds=100))
    with cluster_of(config) as cluster:
        api = Api(cluster)
        held, disabled, busy, free = api.node_names()
        api.core.patch_node(held, {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}})
        note = {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}
        api.core.patch_node(disabled, {"metadata": {"annotations": note}})
        api.create("a", nodeName=busy, run_seconds=60, labels={"airflow-elastic.io/placeholder": "r"})
        until(lambda: free not in api.node_names())
        assert set(api.node_names()) == {held, disabled, busy}
        # A finished pod keeps no node, although its object is still there.
        api.core.delete_namespaced_pod("a", "default", grace_period_seconds=0)
        until(lambda: busy not in api.node_names())
        assert set(api.node_names()) == {held, disabled}
        api.close()


def test_a_stock_out_is_not_asked_for_twice() -> None:
    with cluster_of(pool(stock_out=True)) as cluster:
        api = Api(cluster)
        api.create("a", cpu="1", run_seconds=60)
        until(lambda: desired(api) == 1)
        api.create("wide", cpu="64", run_seconds=60)
        until(lambda: "NotTriggerScaleUp" in api.reasons("wide"))
        assert desired(api) == 1
        assert api.phase("a") == "Pending"
        api.close()
