from __future__ import annotations

from airflow_elastic.kubernetes.quantities import amounts_of, pod_requests, unix_seconds
from airflow_elastic.model.resources import Resources


def container(cpu="", memory="", limits=None, **more):
    requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
    return {"resources": {"requests": requests, **({"limits": limits} if limits else {})}, **more}


def test_containers_add_up_and_the_pod_itself_counts():
    spec = {"containers": [container("500m", "1Gi"), container("1", "512Mi")]}
    assert pod_requests(spec) == Resources.parse({"cpu": "1500m", "memory": "1536Mi", "pods": 1})


def test_a_large_init_container_counts_with_the_sidecars_started_before_it():
    spec = {
        "initContainers": [
            container("200m", restartPolicy="Always"),
            container("2"),
            container("100m", restartPolicy="Always"),
        ],
        "containers": [container("1")],
    }
    # Start-up: 2 + 0.2; running: 1 + 0.2 + 0.1.
    assert pod_requests(spec).get("cpu") == 2200
    spec["containers"] = [container("3")]
    assert pod_requests(spec).get("cpu") == 3300


def test_limits_stand_in_for_requests_that_are_missing():
    spec = {"containers": [container("500m", limits={"cpu": "2", "nvidia.com/gpu": 1})]}
    assert pod_requests(spec) == Resources.parse({"cpu": "500m", "nvidia.com/gpu": 1, "pods": 1})


def test_pod_level_requests_and_overhead():
    spec = {
        "containers": [container("1", "1Gi")],
        "resources": {"requests": {"cpu": "3"}},
        "overhead": {"cpu": "250m", "memory": "100Mi"},
    }
    assert pod_requests(spec) == Resources.parse({"cpu": "3250m", "memory": "1124Mi", "pods": 1})


def test_a_pod_without_requests_takes_a_pod():
    assert pod_requests({"containers": [{}]}) == Resources.of(pods=1)


def test_what_cannot_be_read_counts_as_nothing():
    assert amounts_of({"cpu": "much", "memory": "1Gi"}) == Resources.parse({"memory": "1Gi"})
    assert amounts_of(None) == Resources()


def test_timestamps():
    assert unix_seconds("1970-01-01T00:01:00Z") == 60.0
    assert unix_seconds("1970-01-01T00:01:00.250000Z") == 60.25
    assert unix_seconds("yesterday") is None
    assert unix_seconds(None) is None
