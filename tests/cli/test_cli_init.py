import argparse
import json

import pytest

from airflow_elastic.cli.commands import init
from airflow_elastic.config import load_settings, parse_settings
from airflow_elastic.embedded import ClusterConfig, EmbeddedCluster, NodePoolConfig
from airflow_elastic.errors import ConfigurationError, TemporaryError

NODE = {
    "metadata": {"labels": {"karpenter.sh/nodepool": "general", "kubernetes.io/os": "linux"}},
    "spec": {},
    "status": {"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "58"}},
}


def run(*, write=None, force=False, output="table"):
    init.run(argparse.Namespace(write=None if write is None else str(write), force=force, output=output))


@pytest.fixture
def nodes(monkeypatch):
    """Nodes that the cluster has, to be changed by the test; an exception in the list is raised."""
    found = [NODE]

    def read_nodes():
        for each in found:
            if isinstance(each, Exception):
                raise each
        return found

    monkeypatch.setattr(init, "read_nodes", read_nodes)
    return found


def test_the_file_alone_goes_to_stdout(nodes, capsys):
    run()
    out, err = capsys.readouterr()
    settings = parse_settings(out, "proposal")
    assert settings.mode == "observe"
    assert settings.node_pool("general")
    assert "Found 1 node pool on 1 node." in err
    assert "Nothing is written yet" in err


def test_it_is_written_where_it_is_asked_for(nodes, tmp_path, capsys):
    target = tmp_path / "capacity.yaml"
    run(write=target)
    out, err = capsys.readouterr()
    assert load_settings(target).node_pool("general")
    assert out == ""
    assert f"airflow elastic validate {target}" in err


def test_a_file_that_exists_is_kept_unless_forced(nodes, tmp_path):
    target = tmp_path / "capacity.yaml"
    target.write_text("mine")
    nodes.append(AssertionError("the cluster must not be asked"))
    with pytest.raises(ConfigurationError, match="exists and is left as it is"):
        run(write=target)
    assert target.read_text() == "mine"
    nodes.pop()
    run(write=target, force=True)
    assert load_settings(target).node_pools
    assert [path.name for path in tmp_path.iterdir()] == ["capacity.yaml"]


def test_places_that_cannot_be_written(nodes, tmp_path):
    with pytest.raises(ConfigurationError, match="is a directory: name a file"):
        run(write=tmp_path)
    for target in (tmp_path / "no" / "such" / "folder.yaml", tmp_path / ("x" * 5000), "a\x00b"):
        with pytest.raises(ConfigurationError, match="cannot be written"):
            run(write=target)
    assert list(tmp_path.iterdir()) == []


def test_without_a_cluster_an_example_is_proposed(nodes, capsys):
    nodes[:] = [TemporaryError("the Kubernetes API at x does not answer")]
    run()
    out, err = capsys.readouterr()
    assert parse_settings(out, "proposal").node_pool("elastic")
    assert out.startswith("# An example, not taken from a cluster")
    assert "No cluster could be asked: the Kubernetes API at x does not answer." in err
    assert "Mend the access and repeat" in err


@pytest.mark.parametrize(
    ("found", "told"),
    [([], "has no nodes"), ([{"metadata": {}}], "has 1 nodes, but none that tasks could be planned on")],
)
def test_a_cluster_of_which_nothing_can_be_proposed(nodes, capsys, found, told):
    nodes[:] = found
    run(output="json")
    document = json.loads(capsys.readouterr().out)
    assert document["from_cluster"] is False
    assert told in document["told"]
    assert parse_settings(document["capacity_file"], "x").node_pools


def test_json_holds_the_proposal_and_the_file(nodes, capsys, tmp_path):
    target = tmp_path / "capacity.yaml"
    run(write=target, output="json")
    document = json.loads(capsys.readouterr().out)
    assert document["from_cluster"] is True
    assert document["file"] == str(target)
    assert document["capacity_file"] == target.read_text()
    assert [pool["name"] for pool in document["node_pools"]] == ["general"]


def test_the_nodes_of_a_real_api_server(tmp_path, monkeypatch, capsys):
    size = {"cpu": "4", "memory": "8Gi", "pods": "20"}
    pools = [
        NodePoolConfig(
            name="fixed", allocatable=size, capacity_type="reserved", min_nodes=1, max_nodes=1, initial_nodes=1
        ),
        NodePoolConfig(name="spare", allocatable=size, capacity_type="spot", min_nodes=0, max_nodes=3, initial_nodes=2),
    ]
    with EmbeddedCluster(ClusterConfig(node_pools=pools), time_speed=1000) as cluster:
        cluster.write_kubeconfig(tmp_path / "kubeconfig")
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        # kubernetes.config reads the variable when it is imported, which another test may have caused.
        monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "kubeconfig"))
        monkeypatch.setattr(init, "_NODES_PER_PAGE", "1")
        for _ in range(200):
            if len(init.read_nodes()) == 3:
                break
        run()
    out, err = capsys.readouterr()
    settings = parse_settings(out, "proposal")
    assert "Found 2 node pools on 3 nodes." in err
    assert [(pool.name, pool.capacity_type, pool.provider) for pool in settings.node_pools] == [
        ("fixed", "reserved", "none"),
        ("spare", "spot", "placeholder"),
    ]
    assert [(each.name, each.node_pools) for each in settings.classes] == [("core", ("fixed",)), ("burst", ("spare",))]
    with pytest.raises(TemporaryError, match="does not answer"):
        init.read_nodes()


def test_without_a_cluster_no_file_is_written(nodes, tmp_path, capsys):
    target = tmp_path / "capacity.yaml"
    for found in ([TemporaryError("the API does not answer")], []):
        nodes[:] = found
        for force in (False, True):
            with pytest.raises(SystemExit) as ended:
                run(write=target, force=force)
            assert ended.value.code == init.EXIT_NO_CLUSTER == 2
            assert f"airflow elastic init > {target}" in capsys.readouterr().err
            assert not target.exists()


def test_it_says_that_an_empty_node_pool_cannot_be_seen(nodes, capsys):
    run()
    assert "stands at 0 nodes cannot be seen: add it by hand" in capsys.readouterr().err
