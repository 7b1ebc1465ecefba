"""Finding things in settings by the names that people write."""

from __future__ import annotations

from airflow_elastic.config.values import shown, suggestion
from airflow_elastic.errors import ConfigurationError
from airflow_elastic.model.capacity_class import CapacityClass
from airflow_elastic.model.settings import Settings

__all__ = ["resolve_class"]


def resolve_class(settings: Settings, name: str) -> CapacityClass:
    """Return a capacity class by name; the empty name is the default class.

    Raises:
        ConfigurationError: there is no such class; the nearest known one is named.
    """
    found = settings.capacity_class(name) if isinstance(name, str) else None
    if found is not None:
        return found
    where = settings.source or "the settings"
    known = [each.name for each in settings.classes]
    if not known:
        raise ConfigurationError(f"{where}: no capacity class is declared; add one under classes")
    raise ConfigurationError(f"capacity class {shown(name)} is not in {where}; {suggestion(name, known)}")
