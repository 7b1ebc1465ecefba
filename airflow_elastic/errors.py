"""Errors by what the caller should do: retry later, give up, or mend the configuration.

Every message names the object, the cause and the next step.
"""

from __future__ import annotations

__all__ = ["ConfigurationError", "ElasticError", "Impossible", "TemporaryError"]


class ElasticError(Exception):
    """Root of everything that airflow-elastic raises on purpose."""


class TemporaryError(ElasticError):
    """Something outside did not answer or refused for now: keep the last good state and try again."""


class Impossible(ElasticError):
    """What was asked can never be done (a task wider than any node): give up and say why."""


class ConfigurationError(ElasticError):
    """A capacity file, an option or an annotation is wrong: a person has to mend it."""
