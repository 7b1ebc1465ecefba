"""In the scheduler: the controller as a child process, started, supervised and ended with it (mode ``scheduler``).

Hooks only start and end a thread; no database is touched. The listener exists in the scheduler's own process alone:
where any listener is registered, DAGs with ``end_from_trigger`` fail to import.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from airflow.listeners import hookimpl

if TYPE_CHECKING:
    from airflow_elastic.controller.supervisor import Supervisor

__all__ = ["ControllerListener", "scheduler_listeners"]

# Forked workers share the scheduler's arguments and memory, but not its process id.
_scheduler_pid: int | None = None


class ControllerListener:
    """Starts the controller when the scheduler starts and ends it before the scheduler stops."""

    def __init__(self) -> None:
        self._supervisor: Supervisor | None = None
        self._pid = os.getpid()

    @hookimpl  # type: ignore[untyped-decorator]  # Airflow ships no types for it
    def on_starting(self, component: Any) -> None:
        """Start the controller's supervisor; ``component`` is the scheduler's Job, of which no type is set yet."""
        if self._supervisor is not None or os.getpid() != self._pid or not _is_job(component):
            return
        from airflow_elastic.controller.supervisor import Supervisor

        self._supervisor = Supervisor()
        self._supervisor.start()

    @hookimpl  # type: ignore[untyped-decorator]
    def before_stopping(self, component: Any) -> None:
        """End the controller before the scheduler ends."""
        if self._supervisor is not None and os.getpid() == self._pid and _is_job(component):
            supervisor, self._supervisor = self._supervisor, None
            supervisor.stop()


def scheduler_listeners() -> list[object]:
    """Return the listeners to register: one in the scheduler's own process in mode ``scheduler``, none elsewhere."""
    global _scheduler_pid  # which process is the scheduler is a fact of the process, not of any object in it
    if _scheduler_pid is None and _started_as_scheduler() and _mode() == "scheduler":
        _scheduler_pid = os.getpid()
        os.register_at_fork(after_in_child=_unregister)
    return [ControllerListener()] if _scheduler_pid == os.getpid() else []


def _started_as_scheduler() -> bool:
    """Tell whether this process was started as ``airflow scheduler`` (``airflow standalone`` starts one of its own)."""
    words = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    return words[:1] == ["scheduler"]


def _unregister() -> None:
    """A worker forked from the scheduler inherits its listener manager: there our listener has no business."""
    module = sys.modules.get("airflow.listeners.listener")
    if module is None or module.get_listener_manager.cache_info().currsize == 0:
        return
    plugins = module.get_listener_manager().pm
    for listener in plugins.get_plugins():
        if isinstance(listener, ControllerListener):
            plugins.unregister(listener)


def _is_job(component: Any) -> bool:
    # Task processes pass a marker of their own; the scheduler's health and log servers pass nothing.
    return type(component).__name__ == "Job"


def _mode() -> str:
    from airflow.configuration import conf

    return str(conf.get("elastic", "controller", fallback="scheduler")).strip().lower()
