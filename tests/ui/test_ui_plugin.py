from __future__ import annotations

import json
import subprocess
import sys

from airflow_elastic.plugin import ElasticPlugin

_PROBE = """
import json, sys
import airflow.plugins_manager
before = set(sys.modules)
import airflow_elastic.plugin
plugin = airflow_elastic.plugin.ElasticPlugin()
plugin.external_views
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_importing_the_plugin_imports_nothing_but_itself() -> None:
    # Every task process does: FastAPI or the Kubernetes client here would cost each task seconds.
    done = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, text=True, timeout=60, check=True)
    added = json.loads(done.stdout.splitlines()[-1])
    assert "airflow_elastic.plugin" in added
    ours = {name for name in added if name.startswith("airflow_elastic")}
    assert ours == {"airflow_elastic", "airflow_elastic.plugin"} or ours == {"airflow_elastic.plugin"}
    assert not {name.split(".")[0] for name in added} & {"fastapi", "starlette", "kubernetes", "rich", "numpy"}


def test_the_view_is_in_the_navigation_and_leads_to_the_page() -> None:
    (view,) = ElasticPlugin().external_views
    assert view["destination"] == "nav"
    assert view["href"] == "/elastic/"
    assert view["url_route"] == "elastic-capacity"


def test_the_view_follows_airflows_own_prefix(monkeypatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://example.test/team/airflow/")
    (view,) = ElasticPlugin().external_views
    assert view["href"] == "/team/airflow/elastic/"
    assert view["icon"] == "/team/airflow/elastic/static/icon.svg"


def test_the_application_is_one_and_mounted_under_no_reserved_prefix() -> None:
    from airflow.api_fastapi.app import RESERVED_URL_PREFIXES

    (first,), (second,) = ElasticPlugin().fastapi_apps, ElasticPlugin().fastapi_apps
    assert first["app"] is second["app"]
    assert not any(first["url_prefix"].startswith(prefix) for prefix in RESERVED_URL_PREFIXES)


def test_outside_the_scheduler_there_is_no_listener() -> None:
    # A listener here would make DAGs with end_from_trigger fail to import.
    assert ElasticPlugin().listeners == []
