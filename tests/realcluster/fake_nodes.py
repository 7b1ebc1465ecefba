"""How simulated nodes and their pods behave: kwok's stages, and the log that every simulated pod has."""

from __future__ import annotations

import os
from pathlib import Path

from realcluster.layout import Layout

__all__ = ["write_fake_nodes"]

_NOBODY = 65534
_STAGES = Path(__file__).with_name("kwok_stages.yaml")
_LOGS = """
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterLogs
metadata: {{name: all}}
spec: {{logs: [{{logsFile: {path}}}]}}
"""


def write_fake_nodes(layout: Layout) -> None:
    """Write kwok's configuration.

    kwok never ends a *followed* log, so KubernetesPodOperator with ``get_logs=True`` would wait for ever. It ends it at
    once when it may not watch the log's folder: the folder belongs to somebody else, and kwok runs without the
    capabilities by which root reads everything.
    """
    folder = layout.root / "fake-log"
    folder.mkdir()
    log = folder / "log"
    log.write_text("2026-01-01T00:00:00.000000000Z stdout F simulated pod\n")
    folder.chmod(0o711)
    os.chown(folder, _NOBODY, _NOBODY)
    (layout.root / "kwok.yaml").write_text(_STAGES.read_text() + _LOGS.format(path=log))
