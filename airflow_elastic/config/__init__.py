"""The capacity file and the ``[elastic]`` options, as typed settings.

Importing this package imports neither pydantic nor ruamel.yaml nor Airflow: every DAG parse imports it, and most never
read a capacity file. They come with the first file that is really read.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_elastic.config.annotation import parse_run_annotation as parse_run_annotation
    from airflow_elastic.config.current import WatchedSettings as WatchedSettings
    from airflow_elastic.config.current import configured_path as configured_path
    from airflow_elastic.config.current import current_settings as current_settings
    from airflow_elastic.config.discovery import discover_settings as discover_settings
    from airflow_elastic.config.load import json_schema as json_schema
    from airflow_elastic.config.load import load_settings as load_settings
    from airflow_elastic.config.load import parse_settings as parse_settings
    from airflow_elastic.config.lookup import resolve_class as resolve_class
    from airflow_elastic.config.mistakes import CapacityFileError as CapacityFileError
    from airflow_elastic.config.mistakes import Mistake as Mistake
    from airflow_elastic.config.render import render_capacity_file as render_capacity_file

_EXPORTS = {
    "CapacityFileError": "mistakes",
    "Mistake": "mistakes",
    "WatchedSettings": "current",
    "configured_path": "current",
    "current_settings": "current",
    "discover_settings": "discovery",
    "json_schema": "load",
    "load_settings": "load",
    "parse_run_annotation": "annotation",
    "parse_settings": "load",
    "render_capacity_file": "render",
    "resolve_class": "lookup",
}

__all__ = [*_EXPORTS]


def __getattr__(name: str) -> Any:
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
