from __future__ import annotations

import pytest

from airflow_elastic.kubernetes.nodes import map_node
from airflow_elastic.model.node_pool import NodePool, Taint
from airflow_elastic.model.resources import Resources
from airflow_elastic.model.settings import Settings

GPU = NodePool(
    "gpu",
    (("pool", "gpu"),),
    Resources.parse({"cpu": "8", "memory": "16Gi", "nvidia.com/gpu": 1, "hugepages-2Mi": "1Gi"}),
    taints=(Taint("gpu", "yes"), Taint("spot", effect="")),
)
SETTINGS = Settings(node_pools=(GPU,))
CREATED = "2026-01-01T00:00:00Z"
LATER = "2026-01-01T01:00:00Z"


def node(*, ready="True", changed=CREATED, reason="KubeletReady", taints=(), gpus="1", labels=None, **spec):
    metadata = {"name": "n1", "labels": labels or {"pool": "gpu"}, "creationTimestamp": CREATED, "annotations": {}}
    conditions = [{"type": "DiskPressure", "status": "False"}]
    if ready:
        conditions.append({"type": "Ready", "status": ready, "lastTransitionTime": changed, "reason": reason})
    allocatable = {"cpu": "8", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": gpus}
    return {
        "metadata": metadata,
        "spec": {"taints": [dict(zip(("key", "value", "effect"), each, strict=True)) for each in taints], **spec},
        "status": {"conditions": conditions, "allocatable": allocatable},
    }


def test_a_ready_node_with_declared_and_harmless_taints_is_usable():
    taints = [
        ("gpu", "yes", "NoSchedule"),
        ("spot", "anything", "NoExecute"),
        ("wish", "", "PreferNoSchedule"),
    ]
    facts = map_node(node(taints=taints), SETTINGS)
    assert facts.unusable_because == ""
    assert (facts.is_starting, facts.is_releasing, facts.is_lost) == (False, False, False)
    assert facts.ready_since == facts.created_at == 1767225600.0


def test_a_node_of_no_declared_pool_is_none_of_ours():
    assert map_node(node(labels={"pool": "web"}), SETTINGS) is None
    assert map_node(node(labels={}), Settings(node_pools=(NodePool("all", (), Resources()),))) is None


@pytest.mark.parametrize(
    ("taint", "passes"),
    [
        (("gpu", "no", "NoSchedule"), False),
        (("maintenance", "", "NoExecute"), False),
        (("DeletionCandidateOfClusterAutoscaler", "17", "PreferNoSchedule"), False),
        (("ToBeDeletedByClusterAutoscaler", "17", "NoSchedule"), False),
        (("karpenter.sh/disrupted", "", "NoSchedule"), False),
        (("karpenter.sh/unregistered", "", "NoExecute"), True),
        (("node.kubernetes.io/not-ready", "", "NoSchedule"), True),
        (("readiness.k8s.io/network", "", "NoSchedule"), True),
    ],
)
def test_any_other_taint_blocks(taint, passes):
    facts = map_node(node(taints=[taint]), SETTINGS)
    assert taint[0] in facts.unusable_because
    assert facts.is_starting is passes
    assert facts.is_releasing is (taint[0] in ("ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"))


def test_absent_ready_is_not_usable_but_on_its_way():
    facts = map_node(node(ready=""), SETTINGS)
    assert "Ready" in facts.unusable_because
    assert facts.is_starting
    assert not facts.is_lost


def test_not_ready_from_its_registration_on_is_booting_and_later_is_a_loss():
    assert map_node(node(ready="False", reason="KubeletNotReady"), SETTINGS).is_starting
    lost = map_node(node(ready="False", changed=LATER, reason="KubeletNotReady"), SETTINGS)
    assert (lost.is_starting, lost.is_lost) == (False, True)
    silent = map_node(node(ready="Unknown", reason="NodeStatusUnknown"), SETTINGS)
    assert (silent.is_starting, silent.is_lost) == (False, True)
    assert "NodeStatusUnknown" in silent.unusable_because


def test_a_promised_device_that_is_not_there_yet():
    facts = map_node(node(gpus="0"), SETTINGS)
    assert "nvidia.com/gpu" in facts.unusable_because
    assert "hugepages" not in facts.unusable_because
    assert facts.is_starting


def test_cordoned_deleting_and_marked_for_release():
    assert map_node(node(unschedulable=True), SETTINGS).unusable_because == "it is cordoned"
    shadow = [("node.kubernetes.io/unschedulable", "", "NoSchedule")]
    assert map_node(node(unschedulable=True, taints=shadow), SETTINGS).unusable_because == "it is cordoned"
    deleting = node()
    deleting["metadata"]["deletionTimestamp"] = LATER
    assert map_node(deleting, SETTINGS).is_releasing
    marked = node()
    marked["metadata"]["annotations"]["airflow-elastic.io/release"] = "1"
    assert map_node(marked, SETTINGS).is_releasing


def test_an_annotation_may_forbid_its_removal():
    kept = node()
    kept["metadata"]["annotations"]["cluster-autoscaler.kubernetes.io/scale-down-disabled"] = "true"
    assert "scale-down-disabled" in map_node(kept, SETTINGS).blocks_release
    kept["metadata"]["annotations"]["cluster-autoscaler.kubernetes.io/scale-down-disabled"] = "false"
    assert map_node(kept, SETTINGS).blocks_release == ""
