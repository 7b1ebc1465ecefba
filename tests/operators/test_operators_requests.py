from __future__ import annotations

import pytest
from kubernetes.client import models as k8s

from airflow_elastic.model.resources import Resources
from airflow_elastic.operators.requests import container_requests, field_of, pod_requests
from airflow_elastic.operators.static_pod import StaticPod

DEFAULT = Resources.parse({"cpu": "1", "memory": "512Mi"})
parse = Resources.parse


def container(cpu: str, memory: str = "1Gi", **more: object) -> dict[str, object]:
    return {"name": more.pop("name", "c"), "resources": {"requests": {"cpu": cpu, "memory": memory}}, **more}


def static(**arguments: object) -> Resources:
    return StaticPod.of(arguments.get).requests(DEFAULT)


def test_fields_are_found_in_objects_and_in_dicts_of_both_notations() -> None:
    assert field_of(k8s.V1PodSpec(containers=[], restart_policy="Never"), "restart_policy") == "Never"
    assert field_of({"restartPolicy": "Never"}, "restart_policy") == "Never"
    assert field_of({"restart_policy": "Never"}, "restart_policy") == "Never"
    assert field_of(None, "restart_policy") is None


def test_a_limit_without_a_request_is_the_request() -> None:
    resources = k8s.V1ResourceRequirements(limits={"cpu": "2", "memory": "4Gi"}, requests={"memory": "1Gi"})
    assert container_requests(resources) == parse({"cpu": "2", "memory": "1Gi"})


@pytest.mark.parametrize("quantity", ["{{ params.cpu }}", "lots", None, -1, ["2"]])
def test_a_quantity_that_cannot_be_read_counts_as_by_default(quantity: object) -> None:
    assert container_requests({"requests": {"cpu": quantity, "memory": "2Gi"}}, DEFAULT) == parse(
        {"cpu": "1", "memory": "2Gi"}
    )


def test_containers_add_up_and_only_the_largest_init_container_counts() -> None:
    asked = pod_requests([container("1"), container("500m")], [container("3", "256Mi"), container("2", "4Gi")])
    assert asked == parse({"cpu": "3", "memory": "4Gi"})


def test_an_init_container_that_restarts_runs_beside_what_comes_after_it() -> None:
    sidecar = container("1", "1Gi", restartPolicy="Always")
    assert pod_requests([container("1")], [sidecar]) == parse({"cpu": "2", "memory": "2Gi"})
    assert pod_requests([container("1")], [sidecar, container("3")]) == parse({"cpu": "4", "memory": "2Gi"})
    assert pod_requests([container("1")], [container("3"), sidecar]) == parse({"cpu": "3", "memory": "2Gi"})


def test_overhead_is_added_and_requests_of_the_pod_itself_replace_those_of_its_containers() -> None:
    asked = pod_requests(
        [container("1"), container("1")], overhead={"cpu": "250m"}, pod_level={"requests": {"memory": "3Gi"}}
    )
    assert asked == parse({"cpu": "2250m", "memory": "3Gi"})


def test_a_task_that_states_nothing_counts_as_by_default_and_its_xcom_sidecar_on_top() -> None:
    assert static() == DEFAULT
    assert static(do_xcom_push=True) == parse({"cpu": "1001m", "memory": "522Mi"})


def test_arguments_win_over_the_pod_spec_and_that_over_the_template() -> None:
    template = {"spec": {"containers": [container("3"), container("500m", name="proxy")]}}
    spec = k8s.V1Pod(
        spec=k8s.V1PodSpec(
            containers=[
                k8s.V1Container(name="base", resources=k8s.V1ResourceRequirements(requests={"cpu": "2"})),
            ]
        )
    )
    assert static(pod_template_dict=template) == parse({"cpu": "3500m", "memory": "2Gi"})
    assert static(pod_template_dict=template, full_pod_spec=spec) == parse({"cpu": "2500m", "memory": "1Gi"})
    assert static(
        pod_template_dict=template, full_pod_spec=spec, container_resources={"requests": {"cpu": "1"}}
    ) == parse({"cpu": "1500m", "memory": "1Gi"})


def test_init_containers_of_all_layers_count_and_a_stronger_one_replaces_its_namesake() -> None:
    template = {"spec": {"containers": [container("1")], "initContainers": [container("4", name="fetch")]}}
    assert static(pod_template_dict=template).get("cpu") == 4000
    assert static(pod_template_dict=template, init_containers=[container("2", name="fetch")]).get("cpu") == 2000


def test_a_template_file_is_read_and_one_that_cannot_be_read_yet_is_left_out(tmp_path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text("spec: {containers: [{name: base, resources: {requests: {cpu: 2500m}}}]}")
    assert static(pod_template_file=str(file)) == parse({"cpu": "2500m"})
    broken = tmp_path / "broken.yaml"
    broken.write_text("spec: [")
    for unreadable in ("{{ var.value.template }}", str(tmp_path / "missing.yaml"), str(broken), str(tmp_path)):
        assert static(pod_template_file=unreadable) == DEFAULT
