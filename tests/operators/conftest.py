from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

# Before anything imports airflow: never the home of whoever runs the tests.
os.environ.setdefault("AIRFLOW_HOME", tempfile.mkdtemp(prefix="airflow-elastic-tests-"))

from airflow_elastic.model.capacity_class import CapacityClass
from airflow_elastic.model.node_pool import CapacityType, NodePool, Taint
from airflow_elastic.model.resources import Resources
from airflow_elastic.model.settings import Mode, Settings

NODE = Resources.parse({"cpu": "4", "memory": "8Gi", "pods": 20})
SLOT = Resources.parse({"cpu": "1", "memory": "1Gi"})


@pytest.fixture
def settings() -> Settings:
    return Settings(
        node_pools=(
            NodePool("fixed", (("example.org/pool", "fixed"),), NODE, 1, 2, 30.0, 60.0, 0.65, CapacityType.RESERVED),
            NodePool(
                "elastic",
                (("example.org/pool", "elastic"),),
                NODE,
                0,
                6,
                90.0,
                180.0,
                taints=(Taint("example.org/elastic", "yes"),),
            ),
        ),
        classes=(
            CapacityClass("core", ("fixed",), "core_pool", SLOT, priority_class="core-first"),
            CapacityClass("burst", ("elastic", "fixed"), "burst_pool", SLOT, evictable=True),
        ),
        mode=Mode.MANAGE,
        default_class="burst",
    )


UseSettings = Callable[..., Settings]


@pytest.fixture
def use_settings(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> UseSettings:
    """Put settings in force for operators and policies, as a capacity file would; changes are given by keyword."""

    def use(current: Settings | None = settings, **changes: Any) -> Settings | None:
        current = replace(current, **changes) if current else None
        monkeypatch.setattr("airflow_elastic.config.current_settings", lambda: current)
        return current

    return use


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_elastic.config.current_settings", lambda: None)
    monkeypatch.setattr("airflow_elastic.operators.launching._tags", {})
    monkeypatch.setattr("airflow_elastic.operators.current._said", set())
