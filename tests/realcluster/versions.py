"""Which versions are built. Changing one changes the name of the folder in the cache."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

__all__ = ["GO_FOLDER", "KARPENTER", "KWOK", "fingerprint", "kubernetes_version"]

KWOK = "sigs.k8s.io/kwok/cmd/kwok@v0.8.0"
# Newer ones need a newer Go than the control plane does.
KARPENTER = "sigs.k8s.io/karpenter/kwok@v1.14.1"

GO_FOLDER = Path(__file__).with_name("go")
"""The module of the control plane: go.mod says which Kubernetes and etcd."""


def kubernetes_version() -> str:
    """Return the version of Kubernetes that go.mod requires, e.g. ``v1.36.3``."""
    found = re.search(r"^\s*k8s\.io/kubernetes (v\S+)$", (GO_FOLDER / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        raise ValueError(f"{GO_FOLDER / 'go.mod'} requires no k8s.io/kubernetes")
    return found.group(1)


def fingerprint() -> str:
    """Return what tells one set of programs from another."""
    digest = hashlib.sha256()
    for path in sorted(GO_FOLDER.iterdir()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    digest.update(f"{KWOK}\0{KARPENTER}".encode())
    return digest.hexdigest()[:16]
