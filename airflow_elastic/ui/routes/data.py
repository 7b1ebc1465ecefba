"""JSON for the page: the published status, the latest decisions, and why something is as it is."""

from __future__ import annotations

import hashlib
import json
import time
from functools import cache
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from fastapi.responses import JSONResponse, Response

from airflow_elastic.ui.explaining import explain_subject
from airflow_elastic.ui.published import Published, decision_records, read_published, without_infinities
from airflow_elastic.ui.security import READERS, VeilDep
from airflow_elastic.ui.visibility import Veil

__all__ = ["router"]

router = APIRouter(dependencies=READERS)

MAX_DECISIONS = 1000
MAX_SUBJECT_CHARACTERS = 600
"""An Airflow id has at most 250 characters; a task instance names three of them."""


@cache
def open_store() -> Any:
    """Return this process's store; the page reads its tables and never writes."""
    from airflow_elastic.airflow_db.store import Store

    return Store()


@router.get("/status")
def status(veil_for: VeilDep, if_none_match: Annotated[str | None, Header()] = None) -> Response:
    """Return the published document with its age; 304 while nothing but the clock has moved."""
    now = time.time()
    published = read_published(open_store(), now)
    body, tag = _body_and_tag(published, veil_for(published.document or {}))
    headers = {
        "ETag": tag,
        "Cache-Control": "private, no-cache",
        # Beside the body, so that a 304 brings them too.
        "Elastic-Age": "" if published.age_seconds is None else f"{published.age_seconds:.3f}",
        "Elastic-Now": f"{now:.3f}",
    }
    if if_none_match is not None and tag in [each.strip() for each in if_none_match.split(",")]:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="application/json", headers=headers)


@router.get("/decisions")
def decisions(
    veil_for: VeilDep,
    limit: Annotated[int, Query(ge=1, le=MAX_DECISIONS)] = 200,
) -> JSONResponse:
    """Return the latest decisions, newest first."""
    store = open_store()
    veil = veil_for(read_published(store, time.time()).document or {})
    records = [veil.over_value(record) for record in decision_records(store, limit)]
    return JSONResponse({"decisions": without_infinities(records)}, headers={"Cache-Control": "no-store"})


@router.get("/explain")
def explain(
    veil_for: VeilDep,
    subject: Annotated[str, Query(min_length=1, max_length=MAX_SUBJECT_CHARACTERS)],
) -> JSONResponse:
    """Return why a node, node pool, Airflow pool, DAG, run or task is as it is."""
    store = open_store()
    published = read_published(store, time.time())
    if published.document is None:
        return JSONResponse({"availability": published.availability.value, "sentence": published.sentence}, 404)
    veil = veil_for(published.document)
    # Explained from what this user may see: a hidden DAG's name answers like one that does not exist.
    document = veil.over_value(published.document)
    records = [veil.over_value(record) for record in decision_records(store, MAX_DECISIONS)]
    answer = explain_subject(document, without_infinities(records), subject)
    return JSONResponse(answer, headers={"Cache-Control": "no-store"})


def _body_and_tag(published: Published, veil: Veil) -> tuple[bytes, str]:
    """Return the answer's bytes and its entity tag, over everything but the two clocks."""
    document = veil.over_value(published.document)
    answer: dict[str, Any] = {
        "availability": published.availability.value,
        "sentence": published.sentence,
        "next_step": published.next_step,
        "document": document,
    }
    try:
        body = _to_json(answer)
    except ValueError:  # a figure that is not finite: JSON has none, and a browser would refuse the whole document
        answer = without_infinities(answer)
        document = answer["document"]
        body = _to_json(answer)
    timeless = answer
    if document is not None:
        controller = {**(document.get("controller") or {}), "plan_seconds": 0}
        timeless = {**answer, "document": {**document, "now": 0, "controller": controller}}
    if published.age_seconds is not None:
        # The sentence of a silent controller counts its seconds; the page counts them by itself.
        timeless = {**timeless, "sentence": ""}
    digest = hashlib.blake2b(_to_json(timeless), digest_size=12).hexdigest()
    return body, f'"{digest}"'


def _to_json(answer: dict[str, Any]) -> bytes:
    return json.dumps(answer, separators=(",", ":"), allow_nan=False).encode()
