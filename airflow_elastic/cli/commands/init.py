"""`airflow elastic init`: a capacity file proposed from the nodes of the cluster."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_elastic.cli.commands.validate import describe
from airflow_elastic.cli.output import complain, to_json
from airflow_elastic.config import discover_settings, render_capacity_file
from airflow_elastic.config.discovery import example_settings
from airflow_elastic.errors import ConfigurationError, ElasticError, TemporaryError
from airflow_elastic.model.settings import Settings

__all__ = ["EXIT_NO_CLUSTER", "propose", "read_nodes", "run"]

EXIT_NO_CLUSTER = 2
"""Asked to write a file, and no cluster told what belongs in it."""

_NODES_PER_PAGE = "500"


@dataclass(frozen=True, slots=True)
class Proposal:
    """Settings to begin with and one sentence on where they come from."""

    settings: Settings
    is_from_cluster: bool
    told: str
    """For the person at the terminal."""
    header: str
    """For the head of the file."""


def run(args: argparse.Namespace) -> None:
    """Propose a capacity file: on stdout, or into the file that ``--write`` names.

    Raises:
        SystemExit: 2, when a file was to be written and no cluster told what belongs in it.
    """
    target = Path(args.write) if args.write else None
    if target is not None:
        _refuse_target(target, is_forced=args.force)
    proposal = propose()
    if target is not None and not proposal.is_from_cluster:
        complain(
            f"{proposal.told}\nNothing is written: {target} would hold node pools that you do not have. To begin with "
            f"the example all the same: airflow elastic init > {target}"
        )
        raise SystemExit(EXIT_NO_CLUSTER)
    text = f"# {proposal.header}\n{render_capacity_file(proposal.settings)}"
    if target is not None:
        _write(target, text, is_forced=args.force)
    if args.output == "json":
        document = {
            **describe(proposal.settings),
            "file": str(target) if target else None,
            "from_cluster": proposal.is_from_cluster,
            "told": proposal.told,
            "capacity_file": text,
        }
        sys.stdout.write(to_json(document) + "\n")
        return
    # The file alone goes to stdout, so that `airflow elastic init > capacity.yaml` is a file as well.
    if target is None:
        sys.stdout.write(text)
    complain(proposal.told)
    complain(
        f"Written to {target}. Next: airflow elastic validate {target}, then set [elastic] capacity_file to it."
        if target
        else "Nothing is written yet. Next: airflow elastic init --write capacity.yaml"
    )


def propose() -> Proposal:
    """Return what the cluster's nodes suggest, or the example where no cluster can be asked."""
    try:
        nodes = read_nodes()
    except ElasticError as error:
        return _example(
            f"No cluster could be asked: {_one_line(error)}.\n"
            "What is proposed is an example. Mend the access and repeat this, or fill in your own node pools."
        )
    settings = discover_settings(nodes)
    if not settings.node_pools:
        why = f"has {len(nodes)} nodes, but none that tasks could be planned on" if nodes else "has no nodes"
        return _example(f"The cluster {why}. What is proposed is an example: fill in your own node pools.")
    pools = len(settings.node_pools)
    told = f"Found {pools} node pool{'s' if pools != 1 else ''} on {len(nodes)} node{'s' if len(nodes) != 1 else ''}."
    told = (
        f"{told} Prices are guesses in proportion: fill in your own. "
        "A node pool that stands at 0 nodes cannot be seen: add it by hand."
    )
    return Proposal(settings, True, told, told)


def _example(told: str) -> Proposal:
    return Proposal(
        example_settings(), False, told, "An example, not taken from a cluster: fill in your own node pools."
    )


def read_nodes() -> list[dict[str, Any]]:
    """Return the cluster's nodes as Kubernetes API dicts.

    Raises:
        ConfigurationError: no cluster is configured, or its nodes may not be listed.
        TemporaryError: it does not answer.
    """
    from airflow.configuration import conf

    from airflow_elastic.kubernetes.client import make_cluster_api

    cluster = make_cluster_api(conf.get("elastic", "kubernetes_conn_id", fallback=""))
    nodes: list[dict[str, Any]] = []
    query = {"limit": _NODES_PER_PAGE}
    while True:
        status, body = cluster.call("GET", "/api/v1/nodes", query=query)
        if status in (401, 403):
            raise ConfigurationError(f"{cluster.host} refuses to list nodes ({status}): allow verb list on nodes")
        if status != 200:
            raise TemporaryError(f"{cluster.host} answered {status} when asked for its nodes")
        nodes += [node for node in body.get("items") or [] if isinstance(node, dict)]
        following = (body.get("metadata") or {}).get("continue")
        if not following:
            return nodes
        query = {"limit": _NODES_PER_PAGE, "continue": following}


def _refuse_target(target: Path, *, is_forced: bool) -> None:
    """Refuse before the cluster is asked what could not be written afterwards."""
    try:
        is_directory, exists = target.is_dir(), target.exists()
    except (OSError, ValueError) as error:
        raise _cannot_write(target, error) from None
    if is_directory:
        raise ConfigurationError(f"{target} is a directory: name a file, such as {target / 'capacity.yaml'}")
    if exists and not is_forced:
        raise _exists(target)


def _write(target: Path, text: str, *, is_forced: bool) -> None:
    try:
        if not is_forced:
            with target.open("x", encoding="utf-8") as file:
                file.write(text)
            return
        # In one step: a controller that watches the file never reads half of it.
        draft = target.with_name(f".{target.name}.{os.getpid()}.draft")
        try:
            draft.write_text(text, encoding="utf-8")
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
    except FileExistsError:
        raise _exists(target) from None
    except (OSError, ValueError) as error:
        raise _cannot_write(target, error) from None


def _exists(target: Path) -> ConfigurationError:
    return ConfigurationError(f"{target} exists and is left as it is: name another file or add --force")


def _cannot_write(target: Path, error: Exception) -> ConfigurationError:
    why = getattr(error, "strerror", None) or error
    return ConfigurationError(f"{str(target)[:300]} cannot be written: {why}; name another place")


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split()).rstrip(".")
    return text if len(text) <= 400 else text[:399] + "…"
