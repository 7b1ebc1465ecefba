"""``airflow elastic explain SUBJECT``: why a node, pool, class, DAG, run or task is as it is.

Exit codes: 0 the subject is known; 1 it is not, or nothing is published; 2 the database does not answer.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from airflow_elastic.cli.commands.status import EXIT_NOTHING, as_data, cell, notice, plain_table
from airflow_elastic.cli.output import emit
from airflow_elastic.ui.explaining import explain_subject
from airflow_elastic.ui.published import Availability, Published, decision_records, open_published
from airflow_elastic.ui.words import clock

__all__ = ["run"]

_READ_DECISIONS = 2000


def run(args: argparse.Namespace) -> None:
    """Print why the subject is as it is."""
    subject = " ".join(args.subject) if isinstance(args.subject, list) else str(args.subject)
    store, published = open_published(time.time())
    records = decision_records(store, _READ_DECISIONS)
    if published.document is None:
        emit(args, as_data(published), lambda: notice(published))
        sys.exit(EXIT_NOTHING)
    answer = explain_subject(published.document, records, subject)
    data = {"availability": published.availability.value, **answer}
    emit(args, data, lambda: _text(answer, published))
    sys.exit(0 if answer["found"] else EXIT_NOTHING)


def _text(answer: dict[str, Any], published: Published) -> RenderableType:
    parts: list[RenderableType] = [Text.assemble((answer["title"], "bold"), (f"  {answer['kind']}", "cyan"))]
    if published.availability is Availability.STALE:
        parts.append(notice(published))
    parts += [cell(f"• {sentence}") for sentence in answer["sentences"]]
    if answer["facts"]:
        facts = plain_table("", "", "")
        facts.show_header = False
        for name, value in answer["facts"]:
            facts.add_row(cell(name, "dim"), cell(value))
        parts.append(facts)
    if answer["related"]:
        parts.append(cell(f"See also: {', '.join(answer['related'])}", "dim"))
    if answer["decisions"]:
        log = plain_table("Decisions", "when", "about", "why")
        for record in answer["decisions"]:
            sentence = record["sentence"] + ("" if record["applied"] else " (not done)")
            log.add_row(clock(record["at"]), cell(record["about"]), cell(sentence))
        parts.append(log)
    return Group(*parts)
