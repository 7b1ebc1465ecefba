"""Runs Airflow's own api-server application in this process and prints, as JSON, what callers get from our routes.

A process of its own, since AIRFLOW_HOME, users and database are read when Airflow is first imported. The last line of
its output is the result; see `test_ui_authorised.py`.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from fastapi.testclient import TestClient
from ui_builders import HOSTILE, document

PREFIX = "/elastic"


def main() -> None:
    from airflow.api_fastapi.app import create_app

    airflow_app = create_app()
    mount = next(route for route in airflow_app.routes if getattr(route, "path", "") == PREFIX)
    result: dict[str, Any] = {"routes": routes_of(mount.app), "anonymous": {}, "roles": {}}
    with TestClient(airflow_app, raise_server_exceptions=False) as client:
        for method, path in result["routes"]:
            answer = client.request(method, PREFIX + path)
            result["anonymous"][f"{method} {path}"] = [answer.status_code, answer.text]
        for path in ("/docs", "/redoc", "/openapi.json", "/static/../pages/index.html", "/static/%2e%2e/app.py"):
            result["anonymous"][f"GET {path}"] = [client.get(PREFIX + path).status_code, ""]
        result["anonymous_page"] = brief(client.get(PREFIX + "/", headers={"Accept": "text/html"}))
        result["anonymous_static"] = brief(client.get(PREFIX + "/static/js/main.js"))
        result["bad_token"] = client.get(PREFIX + "/api/status", headers=bearer("x.y.z")).status_code

        result["before_controller"] = client.get(PREFIX + "/api/status", headers=bearer(token(client, "admin"))).json()
        add_dags(document(0.0))
        publish(time.time())
        for role in ("admin", "viewer"):
            result["roles"][role] = seen_by(client, bearer(token(client, role)))
        result["navigation"] = client.get("/api/v2/plugins", headers=bearer(token(client, "admin"))).json()
        result["cookie"] = with_cookie(airflow_app, token(client, "viewer"))
        result["hidden_dags"] = with_hidden_dags(client, bearer(token(client, "viewer")))
        result["forbidden"] = without_permission(client, bearer(token(client, "viewer")))
        publish(time.time() - 100)
        result["stale"] = client.get(PREFIX + "/api/status", headers=bearer(token(client, "admin"))).json()
        result["no_tables"] = without_tables(client, bearer(token(client, "admin")))
    print(json.dumps(result))


def routes_of(app: Any) -> list[tuple[str, str]]:
    """Every (method, path) of the mounted application but its static files; one that is no route fails the test."""
    found = []
    for route in app.routes:
        if getattr(route, "name", "") == "static":
            continue
        found += [(method, route.path) for method in sorted(route.methods)]
    return found


def brief(answer: Any) -> dict[str, Any]:
    return {"status": answer.status_code, "headers": dict(answer.headers), "text": answer.text[:4000]}


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def token(client: TestClient, user: str) -> str:
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

    password = SimpleAuthManager.get_passwords()[user]
    answer = client.post("/auth/token", json={"username": user, "password": password})
    return str(answer.json()["access_token"])


def add_dags(shown: dict[str, Any]) -> None:
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.session import create_session

    from airflow_elastic.ui import security
    from airflow_elastic.ui.visibility import dag_ids_of

    with create_session(scoped=False) as session:
        session.add(DagBundleModel(name="probe"))
        session.flush()
        session.add_all(DagModel(dag_id=dag_id, bundle_name="probe") for dag_id in dag_ids_of(shown))
    security._reach = security.DagReach()  # it asks again once a second only


def publish(now: float) -> None:
    """Publish as the controller does: as the leader, with its token."""
    from airflow_elastic.airflow_db.leader import Leadership
    from airflow_elastic.airflow_db.store import Decision, Store

    leadership = Leadership("probe:1")
    held = leadership.acquire_or_renew(time.time())
    assert held is not None
    store = Store()
    assert store.save_status(document(now), held)
    store.add_decisions([Decision(now, "refusal", HOSTILE, "UNKNOWN_CLASS", f"{HOSTILE} is refused", False)], held)
    leadership.release()


def seen_by(client: TestClient, headers: dict[str, str]) -> dict[str, Any]:
    status = client.get(PREFIX + "/api/status", headers=headers)
    again = client.get(PREFIX + "/api/status", headers={**headers, "If-None-Match": status.headers["ETag"]})
    return {
        "page": brief(client.get(PREFIX + "/", headers=headers)),
        "status": status.json(),
        "age": status.headers["Elastic-Age"],
        "again": brief(again),
        "decisions": client.get(PREFIX + "/api/decisions?limit=5", headers=headers).json(),
        "bad_limit": client.get(PREFIX + "/api/decisions?limit=0", headers=headers).status_code,
        "explain": client.get(PREFIX + "/api/explain", params={"subject": "elastic"}, headers=headers).json(),
        "explain_hostile": brief(client.get(PREFIX + "/api/explain", params={"subject": HOSTILE}, headers=headers)),
        "explain_unknown": client.get(PREFIX + "/api/explain", params={"subject": "elastik"}, headers=headers).json(),
        "explain_long": client.get(
            PREFIX + "/api/explain", params={"subject": "x" * 9999}, headers=headers
        ).status_code,
    }


def with_cookie(airflow_app: Any, text: str) -> int:
    """The page's own way: the browser's session cookie."""
    from airflow.api_fastapi.auth.managers.base_auth_manager import COOKIE_NAME_JWT_TOKEN

    with TestClient(airflow_app, cookies={COOKIE_NAME_JWT_TOKEN: text}) as client:
        return client.get(PREFIX + "/api/status").status_code


def with_hidden_dags(client: TestClient, headers: dict[str, str]) -> dict[str, Any]:
    """A user who may read one DAG only, by the auth manager's word."""
    from airflow.api_fastapi.app import get_auth_manager

    from airflow_elastic.ui import security

    manager = get_auth_manager()
    manager.get_authorized_dag_ids = lambda **_: {"nightly_etl"}
    security._reach = security.DagReach()
    try:
        return {
            "status": client.get(PREFIX + "/api/status", headers=headers).text,
            "decisions": client.get(PREFIX + "/api/decisions", headers=headers).text,
            "explain": client.get(PREFIX + "/api/explain", params={"subject": "ml_features"}, headers=headers).json(),
        }
    finally:
        del manager.get_authorized_dag_ids
        security._reach = security.DagReach()


def without_permission(client: TestClient, headers: dict[str, str]) -> dict[str, int]:
    """A user whom the auth manager denies cluster activity, then one whom it denies pools."""
    from airflow.api_fastapi.app import get_auth_manager

    manager = get_auth_manager()
    answers = {}
    for name in ("is_authorized_view", "is_authorized_pool"):
        setattr(manager, name, lambda **_: False)
        for path in ("/", "/api/status", "/api/decisions", "/api/explain?subject=x"):
            answers[f"{name} {path}"] = client.get(PREFIX + path, headers=headers).status_code
        delattr(manager, name)
    return answers


def without_tables(client: TestClient, headers: dict[str, str]) -> dict[str, Any]:
    from airflow import settings

    from airflow_elastic.airflow_db.tables import metadata
    from airflow_elastic.ui.routes import data

    metadata.drop_all(settings.engine)
    data.open_store.cache_clear()
    return {
        "status": client.get(PREFIX + "/api/status", headers=headers).json(),
        "decisions": client.get(PREFIX + "/api/decisions", headers=headers).json(),
        "explain": client.get(PREFIX + "/api/explain?subject=elastic", headers=headers).status_code,
    }


if __name__ == "__main__":
    main()
    sys.stdout.flush()
