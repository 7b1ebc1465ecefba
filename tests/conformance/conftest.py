"""Every test runs twice: on the embedded cluster and on the real one."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from conformance.clusters import Cluster, EmbeddedUnderTest, RealUnderTest, until
from conformance.pods import Namespace


@pytest.fixture(scope="session", params=["embedded", pytest.param("real", marks=pytest.mark.realcluster)])
def session_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    if request.param == "real":
        yield RealUnderTest(request.getfixturevalue("real_cluster"))
        return
    embedded = EmbeddedUnderTest()
    yield embedded
    embedded.stop()


@pytest.fixture
def cluster(session_cluster: Cluster) -> Iterator[Cluster]:
    yield session_cluster
    session_cluster.drop_nodes()


@pytest.fixture
def ns(cluster: Cluster) -> Iterator[Namespace]:
    """A namespace of the test's own; what is left in it afterwards is deleted without grace."""
    name = f"t-{secrets.token_hex(4)}"
    cluster.rest.made("/api/v1/namespaces", {"metadata": {"name": name}})
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    until(lambda: cluster.name == "embedded" or cluster.rest.get(account).code == 200, 20, "the service account")
    made = Namespace(cluster, name)
    yield made
    cluster.rest.delete(made.pods, {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
    cluster.rest.delete(made.path)
