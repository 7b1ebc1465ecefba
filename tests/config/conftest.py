import pytest

from airflow_elastic.config import parse_settings

GOOD = """\
version: 1
mode: manage
default_class: burst
node_pools:
  fixed:
    selector: {pool: fixed}
    shape: {cpu: "4", memory: 8Gi, pods: 20}
    min_nodes: 1
    max_nodes: 1
    provider: none
  elastic:
    selector: {pool: elastic}
    shape: {cpu: "4", memory: 8Gi}
    max_nodes: 6
    boot_seconds: 30
classes:
  core: {node_pools: [fixed], slot_shape: {cpu: 1, memory: 1Gi}}
  burst: {node_pools: [elastic], airflow_pool: spare, slot_shape: {cpu: 500m, memory: 1Gi}, evictable: true}
limits: {max_nodes: 4, max_hold: 2h, allowed_classes: [burst]}
"""


@pytest.fixture
def good_text():
    return GOOD


@pytest.fixture
def good_settings():
    return parse_settings(GOOD, "good.yaml")
