"""Watches a task's pod in the triggerer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from airflow.providers.cncf.kubernetes.triggers.pod import KubernetesPodTrigger
from airflow.triggers.base import TriggerEvent

__all__ = ["MINIMUM_DWELL_SECONDS", "ElasticKubernetesPodTrigger"]

MINIMUM_DWELL_SECONDS = 8.0
"""An event within a few seconds of the deferral lets the task run again before Airflow has booked the exit of its first
worker process; the scheduler then takes that exit for a failure."""


class ElasticKubernetesPodTrigger(KubernetesPodTrigger):
    """KubernetesPodTrigger that never answers too soon.

    It has no ``__init__`` of its own: what raises there takes the whole triggerer down.
    """

    minimum_dwell_seconds: float = MINIMUM_DWELL_SECONDS

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return this class's path and the provider's arguments."""
        _, kwargs = super().serialize()
        return f"{type(self).__module__}.{type(self).__qualname__}", kwargs

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield the pod's event, at the earliest ``minimum_dwell_seconds`` after the start."""
        started = time.monotonic()
        async for event in super().run():
            remaining = self.minimum_dwell_seconds - (time.monotonic() - started)
            if remaining > 0:
                # Until the event is out, a kill must still clean up the pod.
                self._fired_event = False
                await asyncio.sleep(remaining)
                self._fired_event = True
            yield event
