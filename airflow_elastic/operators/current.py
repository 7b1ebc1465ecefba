"""The capacity file as a parsing process sees it: a broken one must not break every DAG."""

from __future__ import annotations

import logging

from airflow_elastic.model.settings import Settings

__all__ = ["parses_for_one_task", "settings_for_tasks"]

log = logging.getLogger(__name__)

_said: set[str] = set()


def settings_for_tasks() -> Settings | None:
    """Return the settings in force, or None without a capacity file, or with a broken one.

    A worker has no last good file to fall back to, so with a broken one tasks run as plain pod tasks; one warning a
    process says so.
    """
    from airflow_elastic.config import current_settings
    from airflow_elastic.errors import ElasticError

    try:
        settings = current_settings()
    except (ElasticError, OSError) as error:
        if str(error) not in _said:
            _said.add(str(error))
            log.warning(
                "The capacity file cannot be used, so pod tasks run without capacity classes, in the pools that they "
                "name themselves. Mend it (airflow elastic validate shows every mistake): %s",
                error,
            )
        return None
    return settings if settings and settings.classes else None


def parses_for_one_task() -> bool:
    """Tell whether a worker parses this DAG file to run one of its tasks.

    What one task has wrong must not fail the others of its file then: it is refused when its own pod is launched.
    """
    from airflow.sdk import get_parsing_context

    return get_parsing_context().task_id is not None
