"""The HTML page; it holds no data, but its address is not public either."""

from __future__ import annotations

from importlib import resources

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from airflow_elastic.ui.security import READERS

__all__ = ["router"]

router = APIRouter(dependencies=READERS)

# Airflow frames the page (same origin); scripts and styles come from our own files only, so a hostile DAG id that
# slipped into markup could still run nothing.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'self'; base-uri 'none'; form-action 'none'",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}


@router.get("/", response_class=HTMLResponse)
def page() -> HTMLResponse:
    """Return the page."""
    html = resources.files("airflow_elastic.ui").joinpath("pages", "index.html").read_text(encoding="utf-8")
    return HTMLResponse(html, headers=_HEADERS)
