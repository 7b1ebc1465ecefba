"""The FastAPI application that Airflow's api-server mounts under ``/elastic``."""

from __future__ import annotations

from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exception_handlers import http_exception_handler
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Scope

from airflow_elastic import __version__
from airflow_elastic.ui.routes import data, page

__all__ = ["build_app", "shared_app"]

STATIC_FOLDER = Path(__file__).parent / "static"

_REFUSED = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Elastic capacity</title>
<p>You are not signed in to Airflow, or may not see its cluster activity and pools.</p>
<p><a href="{login}" target="_top">Sign in</a> and come back to this page.</p></html>"""


class _Assets(StaticFiles):
    """Static files that a browser checks for a newer version, so that an upgrade never mixes two releases."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response


def build_app() -> FastAPI:
    """Return a new application. No interactive documentation: Airflow would serve it to anybody."""
    app = FastAPI(title="Elastic capacity", version=__version__, openapi_url=None, docs_url=None, redoc_url=None)
    app.include_router(page.router)
    app.include_router(data.router, prefix="/api")
    app.mount("/static", _Assets(directory=STATIC_FOLDER), name="static")
    app.add_exception_handler(HTTPException, _refuse)
    return app


@cache
def shared_app() -> FastAPI:
    """Return the process's one application: plugin managers ask more than once."""
    return build_app()


async def _refuse(request: Request, error: Exception) -> Response:
    """Answer a person who opens the page without a session with a way in; answer programs with JSON."""
    assert isinstance(error, HTTPException)
    wants_html = "text/html" in request.headers.get("accept", "")
    if error.status_code in (401, 403) and wants_html:
        return HTMLResponse(_REFUSED.format(login=escape(_airflow_root(request) + "/")), status_code=error.status_code)
    answer: Any = await http_exception_handler(request, error)
    return answer


def _airflow_root(request: Request) -> str:
    # root_path is Airflow's own prefix plus ours.
    return str(request.scope.get("root_path", "")).removesuffix("/elastic")
