"""Why is it as it is? Answers from the published document and the decisions, the same for page and command."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from airflow_elastic.ui.asks import ask_time
from airflow_elastic.ui.explaining_tasks import is_of_task, named_task, pods_on_node, task_sentence
from airflow_elastic.ui.words import clock, count, duration, moment, shape_text

__all__ = ["explain_subject", "known_subjects"]

MAX_DECISIONS = 25
_SUGGESTIONS = 5
_MOST_INSTANCES = 10

Document = dict[str, Any]


@dataclass(slots=True)
class _Answer:
    """What was found so far; a name may be a node pool, a class and an Airflow pool at once."""

    kinds: list[str] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)
    related: list[str] = field(default_factory=list)

    def say(self, *sentences: str) -> None:
        self.sentences += [each for each in sentences if each and each not in self.sentences]

    def relate(self, names: Iterable[str]) -> None:
        self.related += [name for name in dict.fromkeys(names) if name and name not in self.related]


def explain_subject(document: Document, decisions: Sequence[dict[str, Any]], subject: str) -> dict[str, Any]:
    """Return why a node, node pool, Airflow pool, class, DAG, run or task is as it is, as plain JSON.

    Keys: ``subject, title, kind, found, sentences, facts`` (pairs of text), ``related`` (other subjects) and
    ``decisions``. A name that is not known is answered with those that are near to it.
    """
    subject = " ".join(subject.split())
    answer = _Answer()
    for explain in _EXPLAINERS:
        explain(document, subject, answer)
    _what_is_planned(document, subject, answer)
    log = [each for each in decisions if _mentions(each, subject)][:MAX_DECISIONS]
    found = bool(answer.kinds or answer.sentences or log)
    if not found:
        near = get_close_matches(subject, known_subjects(document), n=_SUGGESTIONS, cutoff=0.5)
        answer.say(
            f"Nothing named {subject!r} is in the published status, and no decision mentions it.",
            _unknown_task(document, subject),
            "It answers for a node, a node pool, an Airflow pool, a capacity class, a DAG, a run (DAG_ID RUN_ID) or "
            "a task (DAG_ID.TASK_ID); a DAG appears once it has a coming or active run that needs nodes.",
        )
        answer.relate(near)
    return {
        "subject": subject,
        "title": subject,
        "kind": ", ".join(answer.kinds) or ("known from decisions" if found else "unknown"),
        "found": found,
        "sentences": answer.sentences,
        "facts": [list(fact) for fact in answer.facts],
        "related": [name for name in answer.related if name != subject],
        "decisions": log,
    }


def known_subjects(document: Document) -> list[str]:
    """Return every name that can be explained, without doubles, in the document's order."""
    names = [pool["name"] for pool in document["node_pools"]]
    names += [node["name"] for pool in document["node_pools"] for node in pool["nodes"]]
    names += [pool["name"] for pool in document["airflow_pools"]]
    names += [each["name"] for each in document["classes"]]
    tasks = [f"{task['dag_id']}.{task['task_id']}" for task in document.get("tasks", ())]
    names += [run["dag_id"] for run in (*document["runs"], *document["active_runs"], *document["reservations"])]
    return list(dict.fromkeys([*names, *tasks]))


def _node(document: Document, subject: str, answer: _Answer) -> None:
    for pool in document["node_pools"]:
        for node in pool["nodes"]:
            if node["name"] != subject:
                continue
            now = document["now"]
            answer.kinds.append(f"node of {pool['name']}")
            state = node["state"]
            pods, of = count(node["task_pods"], "task pod"), pods_on_node(document, subject)
            answer.say(
                f"It is {state}{': ' + node['why'] if node['why'] else ''}.",
                f"{pods} {'runs' if node['task_pods'] == 1 else 'run'} there{f': {of}' if of else ''}."
                if node["task_pods"]
                else "",
                f"It is held warm by {count(node['placeholders'], 'placeholder')}." if node["placeholders"] else "",
                node["kept_because"],
                "It stays because its pool has no provider: nothing here removes its nodes."
                if pool["provider"] == "none" and not node["kept_because"]
                else "",
            )
            answer.facts += [
                ("registered", f"{clock(node['created_at'])} ({moment(node['created_at'], now)})"),
                ("usable since", moment(node["usable_since"], now) if node["usable_since"] else "not yet"),
                ("room for pods", shape_text(node["allocatable"])),
                ("price", f"{pool['price_per_node_hour']} per hour"),
            ]
            answer.relate([pool["name"]])


def _node_pool(document: Document, subject: str, answer: _Answer) -> None:
    for pool in (each for each in document["node_pools"] if each["name"] == subject):
        answer.kinds.append("node pool")
        target = pool["target_nodes"]
        stand = pool["usable_nodes"] + pool["booting_nodes"] + pool["unusable_nodes"]
        answer.say(
            f"{count(pool['usable_nodes'], 'node')} usable, {pool['booting_nodes']} booting, "
            f"{pool['coming_nodes']} asked for, {pool['unusable_nodes']} unusable"
            + (f"; the plan wants {target}." if target is not None else "."),
            f"It brings no node now: {pool['failure']}" if pool["failure"] else "",
        )
        learnt = count(pool["boot_samples"], "boot") + " seen" if pool["boot_samples"] else "from the capacity file"
        answer.facts += [
            ("stand now", f"{stand} of {pool['min_nodes']} to {pool['max_nodes']}"),
            ("most that known runs need at once", count(_peak(document, pool), "node")),
            (
                "boot time",
                f"{duration(pool['boot_seconds_q50'])}, at times {duration(pool['boot_seconds_q90'])} ({learnt})",
            ),
            ("one node", shape_text(pool["shape"])),
            ("price", f"{pool['price_per_node_hour']} per node-hour ({pool['capacity_type']})"),
            ("provider", pool["provider"]),
        ]
        answer.relate(each["name"] for each in document["classes"] if subject in each["node_pools"])
        answer.relate(run["dag_id"] for run in document["runs"] if run["node_pool"] == subject)


def _peak(document: Document, pool: Document) -> int:
    """Return the most nodes that known runs need of a pool at one moment, within its maximum."""
    runs = [run for run in document["runs"] if run["node_pool"] == pool["name"]]
    together = (
        sum(run["nodes"] for run in runs if run["needed_at"] <= first["needed_at"] < run["until_at"]) for first in runs
    )
    return int(min(max([*together, *(step[1] for step in pool["forecast"])], default=0), pool["max_nodes"]))


def _airflow_pool(document: Document, subject: str, answer: _Answer) -> None:
    for pool in (each for each in document["airflow_pools"] if each["name"] == subject):
        answer.kinds.append("Airflow pool")
        slots, usable = pool["slots"], pool["usable_slots"]
        if not pool["capacity_class"]:
            answer.say("No capacity class uses this pool: it is left alone.")
        elif usable is None:
            answer.say("How many of its slots fit on usable nodes is not known yet.")
        elif slots < 0:
            answer.say(f"It is unlimited, but {usable} slots fit on usable nodes: Airflow may start more than fits.")
        elif slots > usable:
            answer.say(f"{slots} slots are offered and {usable} fit on usable nodes.")
        else:
            answer.say(f"{slots} slots are offered; {usable} fit on usable nodes.")
        if pool["scheduled"] and 0 <= slots <= pool["occupied"]:
            answer.say(f"Tasks of {count(pool['scheduled'], 'slot')} are held back: every slot is taken.")
        answer.facts += [
            ("slots", "unlimited" if slots < 0 else str(slots)),
            ("fit on usable nodes", "unknown" if usable is None else str(usable)),
            (
                "taken",
                f"{pool['occupied']} ({pool['running']} running, {pool['queued']} queued, {pool['deferred']} deferred)",
            ),
            ("held back", str(pool["scheduled"])),
        ]
        answer.relate([pool["capacity_class"]])


def _capacity_class(document: Document, subject: str, answer: _Answer) -> None:
    for each in (each for each in document["classes"] if each["name"] == subject):
        answer.kinds.append("capacity class")
        answer.say(
            f"Its tasks run on {', then '.join(each['node_pools'])} and go through the Airflow pool "
            f"{each['airflow_pool']}; they {'may' if each['evictable'] else 'are never to'} be evicted."
        )
        answer.facts.append(("one slot", shape_text(each["slot_shape"])))
        answer.relate([*each["node_pools"], each["airflow_pool"]])


def _runs(document: Document, subject: str, answer: _Answer) -> None:
    """Explain a DAG by its id, or one of its runs by run id or by both."""
    now = document["now"]

    def is_meant(entry: Document) -> bool:
        return subject in (entry["dag_id"], entry["run_id"], f"{entry['dag_id']} {entry['run_id']}")

    reserved = [each for each in document["reservations"] if is_meant(each)]
    coming = [each for each in document["runs"] if is_meant(each)]
    active = [each for each in document["active_runs"] if is_meant(each)]
    entries = [*reserved, *coming, *active]
    if not entries:
        return
    answer.kinds.append("DAG" if subject in {entry["dag_id"] for entry in entries} else "run")
    for run in active:
        states = ", ".join(f"{number} {state.replace('_', ' ')}" for state, number in run["states"].items())
        since = duration(now - run["starts_at"])
        answer.say(f"Run {run['run_id']} is {run['phase']} since {since}: {states or 'no tasks yet'}.")
    for run in coming:
        ask_at = ask_time(document, run)
        asks = "were asked for" if ask_at is not None and ask_at <= now else "are due to be asked for"
        answer.say(
            f"Run {run['run_id']} ({moment(run['starts_at'], now)}) needs {count(run['nodes'], 'node')} of "
            f"{run['node_pool']} {moment(run['needed_at'], now)} for {duration(run['until_at'] - run['needed_at'])}"
            + (f"; they {asks} {moment(ask_at, now)}." if ask_at is not None else ".")
        )
    for each in reserved:
        answer.say(
            f"Its reservation of {count(each['nodes'], 'node')} of {each['node_pool']} for run {each['run_id']} is "
            f"{each['state'].replace('_', ' ')}" + (f": {each['why']}." if each["why"] else ".")
        )
        answer.facts.append((f"longest hold, {each['node_pool']}", moment(each["expires_at"], now)))
    answer.relate(entry["node_pool"] for entry in (*reserved, *coming))


def _task(document: Document, subject: str, answer: _Answer) -> None:
    """Explain a task by ``DAG_ID.TASK_ID``, optionally with a map index in brackets and a run id behind it."""
    meant = [task for task in document.get("tasks", ()) if is_of_task(task, subject)]
    if not meant:
        return
    answer.kinds.append("task")
    for task in meant[:_MOST_INSTANCES]:
        answer.say(f"{named_task(task)} of run {task['run_id']} {task_sentence(document, task)}")
    if len(meant) > _MOST_INSTANCES:
        answer.say(f"And {count(len(meant) - _MOST_INSTANCES, 'more instance')} of it, waiting or started.")
    first = meant[0]
    answer.facts += [
        ("capacity class", first["capacity_class"] or "none"),
        ("Airflow pool", f"{first['airflow_pool'] or 'unknown'}, {count(first['pool_slots'], 'slot')} each"),
    ]
    answer.relate([first["dag_id"], first["capacity_class"], first["airflow_pool"]])
    answer.relate(task["pod"]["node"] for task in meant[:_MOST_INSTANCES] if task["pod"])


def _unknown_task(document: Document, subject: str) -> str:
    """Return what can be said of a task of a known DAG that is neither held back nor started."""
    dag_ids = {run["dag_id"] for run in (*document["runs"], *document["active_runs"], *document["reservations"])}
    if not any(subject.startswith(f"{dag_id}.") for dag_id in dag_ids):
        return ""
    left_out = document.get("tasks_left_out", 0)
    beyond = f" ({count(left_out, 'task instance')} beyond the published ones cannot be told)" if left_out else ""
    return f"No task instance of it is held back or started now{beyond}: its upstream is not done, or it has finished."


def _what_is_planned(document: Document, subject: str, answer: _Answer) -> None:
    for action in document["actions"]:
        if action["about"] == subject:
            done = document["mode"] == "manage" or (document["mode"] == "sync" and action["kind"] == "slots")
            was, to = ("unlimited" if number < 0 else number for number in (action["was"], action["to"]))
            answer.say(f"{'Now' if done else 'Recommended'}: {action['kind']} {was} → {to}: {action['sentence']}.")
    for refusal in document["refusals"]:
        if _mentions(refusal, subject):
            answer.say(refusal["sentence"])


def _mentions(record: dict[str, Any], subject: str) -> bool:
    """Tell whether a decision or refusal is about the subject, or about a part of it (``DAG.task``, ``DAG run``)."""
    about = record["about"]
    if about == subject or about.startswith((f"{subject} ", f"{subject}.", f"{subject}/")):
        return True
    words = record["sentence"].replace(",", " ").replace(";", " ").replace(":", " ").split()
    return subject in words


_EXPLAINERS: tuple[Callable[[Document, str, _Answer], None], ...] = (
    _node, _node_pool, _airflow_pool, _capacity_class, _runs, _task,
)  # fmt: skip
