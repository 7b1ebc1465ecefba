from __future__ import annotations

from collections.abc import Iterator

import pytest
from embedded_helpers import Api, cluster_of

from airflow_elastic.embedded import NodePoolConfig


@pytest.fixture
def api() -> Iterator[Api]:
    """One node with 4 CPUs, Ready."""
    with cluster_of(NodePoolConfig("fixed", initial_nodes=1, max_nodes=5)) as cluster:
        made = Api(cluster)
        yield made
        made.close()
