"""Shows the page on a made-up installation, without Airflow: `python tests/ui/ui_preview.py --nodes 1000`.

For people who work on the page. It serves the page's own files and answers as the real routes do; nothing is
authorised, so it listens on 127.0.0.1 only.
"""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from ui_builders import decisions, document

import airflow_elastic.ui
from airflow_elastic.model.settings import Mode
from airflow_elastic.ui.explaining import explain_subject
from airflow_elastic.ui.published import Published, read_published

UI = Path(airflow_elastic.ui.__file__).parent
# The policy of the real page (ui/routes/page.py imports Airflow's security, which this does without).
POLICY = re.search(
    r'"Content-Security-Policy": "(.*?)",\n', (UI / "routes" / "page.py").read_text().replace('"\n    "', "")
)[1]


class PreviewStore:
    """Answers as the real store would in the chosen state."""

    def __init__(self, state: str, nodes: int) -> None:
        self.state, self.nodes = state, nodes
        self.began = time.time()

    @property
    def missing_tables(self) -> str:
        return "no tables" if self.state == "no-tables" else ""

    def load_status(self) -> dict | None:
        if self.state in ("no-tables", "no-controller"):
            return None
        now = self.began if self.state in ("stale", "still") else time.time()
        error = "capacity.yaml, line 12: node_pools.elastic.max_node: unknown key; did you mean max_nodes?"
        made = document(
            now, nodes=self.nodes, frozen=self.state == "frozen", error=error if self.state == "frozen" else "",
            mode=Mode.OBSERVE if self.state == "frozen" else Mode.MANAGE,
        )  # fmt: skip
        if self.state == "empty":
            made |= {"node_pools": [], "airflow_pools": [], "runs": [], "active_runs": [], "reservations": [],
                     "actions": [], "refusals": []}  # fmt: skip
        if self.state == "stale":
            made["now"] -= 200
        return made


def build(store: PreviewStore) -> FastAPI:
    """The page over a store, with its real headers and without any authorisation."""
    app = FastAPI()

    @app.get("/", response_class=HTMLResponse)
    def page() -> HTMLResponse:
        html = (UI / "pages" / "index.html").read_text(encoding="utf-8")
        return HTMLResponse(html, headers={"Content-Security-Policy": POLICY})

    @app.get("/api/status")
    def status() -> JSONResponse:
        if store.state == "signed-out":
            return JSONResponse({"detail": "Not authenticated"}, 401)
        published: Published = read_published(store, time.time())
        body = {name: getattr(published, name) for name in ("availability", "sentence", "next_step", "document")}
        age = "" if published.age_seconds is None else str(published.age_seconds)
        return JSONResponse(body, headers={"Elastic-Age": age, "Elastic-Now": str(time.time())})

    @app.get("/api/decisions")
    def latest() -> dict:
        return {"decisions": [] if store.state == "empty" else decisions(store.began)}

    @app.get("/api/explain")
    def explain(subject: str) -> dict:
        return explain_subject(store.load_status() or {}, decisions(store.began), subject)

    app.mount("/static", StaticFiles(directory=UI / "static"))
    return app


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8099)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--state", default="busy", help="busy, frozen, stale, still, empty, no-controller, no-tables")
    args = parser.parse_args()
    app = build(PreviewStore(args.state, args.nodes))
    uvicorn.run(app, host="127.0.0.1", port=args.port, log_level="warning")


if __name__ == "__main__":
    main()
