"""Registration with Airflow: the page, its routes, the scheduler's listener. Nothing else.

Every Airflow process loads plugins, task processes too: everything that costs an import sits behind a property, which
only the process that needs it reads.
"""

from __future__ import annotations

from typing import Any

from airflow.plugins_manager import AirflowPlugin

__all__ = ["ElasticPlugin"]

URL_PREFIX = "/elastic"


class ElasticPlugin(AirflowPlugin):
    """What Airflow's plugin manager reads. Entry-point plugins are instances, so properties work."""

    name = "airflow_elastic"

    @property
    def fastapi_apps(self) -> list[dict[str, Any]]:
        """Return the page's application; only the api-server asks, so only there FastAPI is imported."""
        from airflow_elastic.ui.app import shared_app

        return [{"app": shared_app(), "url_prefix": URL_PREFIX, "name": "Elastic capacity"}]

    @property
    def external_views(self) -> list[dict[str, Any]]:
        """Return the entry in Airflow's navigation; its address follows ``[api] base_url``."""
        from urllib.parse import urlsplit

        from airflow.configuration import conf

        root = urlsplit(conf.get("api", "base_url", fallback="") or "").path.rstrip("/")
        return [
            {
                "name": "Capacity",  # Airflow's navigation cuts anything longer
                "href": f"{root}{URL_PREFIX}/",
                "destination": "nav",
                "nav_top_level": True,
                "url_route": "elastic-capacity",
                "icon": f"{root}{URL_PREFIX}/static/icon.svg",
                "icon_dark_mode": f"{root}{URL_PREFIX}/static/icon-dark.svg",
            }
        ]

    @property
    def listeners(self) -> list[Any]:
        """Return the listener that supervises the controller: in the scheduler only, an empty list elsewhere.

        A listener in a process that parses DAGs would make DAGs with ``end_from_trigger`` fail to import.
        """
        from airflow_elastic.listeners import scheduler_listeners

        return list(scheduler_listeners())
