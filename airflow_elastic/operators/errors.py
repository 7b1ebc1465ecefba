"""Errors that end a task at once: trying again cannot help."""

from __future__ import annotations

from airflow.sdk.exceptions import AirflowFailException

from airflow_elastic.errors import ConfigurationError, Impossible

__all__ = ["MisconfiguredTask", "TaskTooWide"]


class TaskTooWide(Impossible, AirflowFailException):
    """No node of the task's class can ever hold it; the message says what it asks for and what nodes offer."""


class MisconfiguredTask(ConfigurationError, AirflowFailException):
    """The task names a class or node pool that the capacity file does not have."""
