"""The roles of deploy/rbac: applied to a cluster, used as the accounts they are for, compared with what was used."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client

from airflow_elastic.kubernetes.client import ClusterApi
from realcluster.cluster import RealCluster

__all__ = ["NAMESPACE", "Grant", "as_account", "granted", "made", "used"]

NAMESPACE = "airflow"
_FOLDER = Path(__file__).parents[2] / "deploy/rbac"
_PATHS = {
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
}

Grant = tuple[str, str, str, str]
"""Namespace (empty: all), API group, resource or resource/subresource, verb."""


def documents() -> list[dict[str, Any]]:
    """Return every object of deploy/rbac."""
    return [each for path in sorted(_FOLDER.glob("*.yaml")) for each in yaml.safe_load_all(path.read_text())]


def made(api: client.ApiClient) -> None:
    """Make the namespace and all objects."""
    client.CoreV1Api(api).create_namespace({"metadata": {"name": NAMESPACE}})
    for body in documents():
        path = _PATHS[body["kind"]].format(namespace=body["metadata"].get("namespace", ""))
        status, answer = ClusterApi(api).call("POST", path, body)
        assert status == 201, answer


def as_account(api: client.ApiClient, name: str) -> client.ApiClient:
    """Return a client that is one of the accounts, by a token of an hour."""
    request = {"spec": {"expirationSeconds": 3600}}
    token = client.CoreV1Api(api).create_namespaced_service_account_token(name, NAMESPACE, request).status.token
    # Only address and authority: a configuration loaded from the kubeconfig would put its own token back.
    configuration = client.Configuration()
    configuration.host, configuration.ssl_ca_cert = api.configuration.host, api.configuration.ssl_ca_cert
    configuration.api_key = {"BearerToken": f"Bearer {token}"}
    return client.ApiClient(configuration)


def granted(account: str) -> set[Grant]:
    """Return all that an account may do by the files."""
    found: set[Grant] = set()
    roles = {(each["kind"], each["metadata"]["name"]): each for each in documents() if each["kind"].endswith("Role")}
    for binding in documents():
        if binding["kind"].endswith("Binding") and binding["subjects"][0]["name"] == account:
            role = roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]]
            namespace = role["metadata"].get("namespace", "")
            found |= {(namespace, *rest) for rule in role["rules"] for rest in _expanded(rule)}
    return found


def used(cluster: RealCluster, account: str) -> set[Grant]:
    """Return what an account did and was allowed to, by the API server's own log."""
    found: set[Grant] = set()
    user = f"system:serviceaccount:{NAMESPACE}:{account}"
    for line in cluster.layout.audit_log.read_text().splitlines():
        event = json.loads(line)
        about = event.get("objectRef")
        allowed = event.get("annotations", {}).get("authorization.k8s.io/decision") == "allow"
        if event["user"]["username"] == user and about and allowed:
            resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
            found.add((about.get("namespace", ""), about.get("apiGroup", ""), resource, event["verb"]))
    return found


def _expanded(rule: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                yield group, resource, verb
