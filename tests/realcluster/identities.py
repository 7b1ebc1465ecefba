"""Who may come in: one static token each, and kubeconfigs that carry them."""

from __future__ import annotations

import base64
import json
import secrets

from realcluster.layout import API_URL, ClusterOptions, Layout

__all__ = ["ADMIN", "write_identities", "write_outside_kubeconfigs"]

ADMIN = "admin"


def write_identities(layout: Layout, options: ClusterOptions) -> None:
    """Write the token file and a kubeconfig for use inside for every component and for the admin."""
    users = {
        ADMIN: (ADMIN, "system:masters"),
        "kwok": ("kwok", "system:masters"),
        "karpenter": ("karpenter", "system:masters"),
        "kube-scheduler": ("system:kube-scheduler", ""),
        "kube-controller-manager": ("system:kube-controller-manager", ""),
    }
    for number in range(1, options.real_nodes + 1):
        users[f"r{number}"] = (f"system:node:r{number}", "system:nodes")
    lines = []
    layout.kubeconfig(ADMIN).parent.mkdir()
    for name, (user, group) in users.items():
        token = secrets.token_urlsafe(24)
        lines.append(f"{token},{user},{name}" + (f',"{group}"' if group else ""))
        layout.kubeconfig(name).write_text(_kubeconfig(layout, API_URL, token))
    (layout.root / "tokens.csv").write_text("\n".join(lines) + "\n")


def write_outside_kubeconfigs(layout: Layout, url: str) -> None:
    """Write the admin's kubeconfig for processes outside the namespaces."""
    layout.outside_kubeconfig(ADMIN).parent.mkdir()
    inside = json.loads(layout.kubeconfig(ADMIN).read_text())
    layout.outside_kubeconfig(ADMIN).write_text(_kubeconfig(layout, url, inside["users"][0]["user"]["token"]))


def _kubeconfig(layout: Layout, url: str, token: str) -> str:
    authority = base64.b64encode((layout.pki / "ca.crt").read_bytes()).decode()
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "real", "cluster": {"server": url, "certificate-authority-data": authority}}],
            "users": [{"name": "real", "user": {"token": token}}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": "real", "namespace": "default"}}],
            "current-context": "real",
        },
        indent=2,
    )
