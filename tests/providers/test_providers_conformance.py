from __future__ import annotations

import pytest

from airflow_elastic.embedded import AutoscalerConfig
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.resources import Resources
from airflow_elastic.providers.placeholder import PlaceholderProvider
from airflow_elastic.providers.scale import ScaleProvider
from airflow_elastic.testing.embedded_harness import EmbeddedHarness
from airflow_elastic.testing.provider_conformance import ProviderConformance

SHAPE = Resources.parse({"cpu": "4", "memory": "8Gi", "pods": 20})
SELECTOR = (("pool", "elastic"),)


class TestScale(ProviderConformance):
    @pytest.fixture
    def harness(self):
        options = {"group": "embedded.airflow-elastic.io", "version": "v1", "plural": "nodepools", "name": "elastic"}
        pool = NodePool("elastic", SELECTOR, SHAPE, 0, 3, provider="scale", provider_options=tuple(options.items()))
        with EmbeddedHarness(pool, ScaleProvider) as harness:
            yield harness


class TestPlaceholder(ProviderConformance):
    @pytest.fixture
    def harness(self):
        pool = NodePool("elastic", SELECTOR, SHAPE, 0, 3)
        autoscaler = AutoscalerConfig(scan_seconds=0.1, empty_seconds=0.3)
        with EmbeddedHarness(
            pool, lambda pool, api: PlaceholderProvider(pool, api, "default"), autoscaler=autoscaler
        ) as harness:
            yield harness
