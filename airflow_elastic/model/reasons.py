"""One enum for every decision and refusal, each with one human sentence that all surfaces show alike."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["Reason", "ReasonCode"]


class ReasonCode(Enum):
    """Codes with their sentence; braces are filled with figures by ``Reason.of``."""

    # nodes out
    PREWARM = "{dag_id} run {run_id} needs {nodes} node(s) of {node_pool} at {needed}; they take up to {boot_seconds:.0f} s to boot, so they are asked for now"
    TASKS_WAIT = "{tasks} task(s) are ready or pending and need {nodes} node(s) of {node_pool}; {have} stand or come"
    MORE_FOR_RUN = (
        "the active run(s) need {nodes} node(s) of {node_pool} within {lead_seconds:.0f} s; {have} stand or come"
    )
    KEEP_MINIMUM = "{node_pool} keeps at least {nodes} node(s) (min_nodes)"
    ANNOTATION = "{dag_id} run {run_id} asks for {nodes} node(s) of {node_pool} by its annotation"
    # nodes in
    RELEASE_NO_DOWNSTREAM = (
        "no unfinished or coming task needs {node} of {node_pool} within the next {hold_seconds:.0f} s"
    )
    RELEASE_ORPHAN = "{what} has no owner any more and is swept"
    RESERVATION_EXPIRED = "{dag_id} run {run_id} held {nodes} node(s) of {node_pool} for its longest hold of {max_hold_seconds:.0f} s without using them"
    # kept
    KEPT_COOLDOWN = "{node} stays: {node_pool} grew {ago_seconds:.0f} s ago, its cool-down is {cooldown_seconds:.0f} s"
    KEPT_SOON_NEEDED = "{node} stays: {needed_by} needs it in {in_seconds:.0f} s, sooner than a new node would pay ({hold_seconds:.0f} s)"
    KEPT_BUSY = "{node} stays: {pods} pod(s) of tasks run there"
    KEPT_UNCOLLECTED = "{node} stays: {pods} finished pod(s) there wait for their task to be picked up; log and result would go with the node"
    KEPT_BLOCKED = "{node} stays: {why}"
    # slots
    SLOTS_FOLLOW_NODES = "{slots} slot(s) of {airflow_pool} fit on {nodes} usable node(s)"
    SLOTS_DOWN_BEFORE_NODES = "{slots} slot(s) of {airflow_pool} fit once {releasing} node(s) have gone"
    SLOTS_FOR_FINISHED = (
        "{slots} slot(s) of {airflow_pool}: {finishing} finished pod(s) wait for their task to be picked up"
    )
    # refusals
    AT_MAXIMUM = "{node_pool} may have {maximum} node(s) at most (max_nodes); {wanted} would be needed"
    IMPOSSIBLE_TASK = "{task} asks for {requests}, more than any node of {node_pools} offers ({shape}); it can never run: lower its requests or give its class a larger node pool"
    IMPOSSIBLE_SLOTS = "{task} needs {pool_slots} slots of {airflow_pool}, but a node holds {largest} at most"
    UNKNOWN_CLASS = (
        "{task} names the capacity class {capacity_class!r}, which the capacity file does not have ({known})"
    )
    ANNOTATION_REFUSED = "the annotation of {dag_id} run {run_id} is not honoured: {why}"
    PROVIDER_FAILED = "{node_pool} brings no node now: {failure}"
    FROZEN_CLUSTER = "the view of the cluster is {age_seconds:.0f} s old (limit {limit_seconds:.0f} s): nothing is changed until it is back"
    FROZEN_AIRFLOW = "the view of Airflow's database is {age_seconds:.0f} s old (limit {limit_seconds:.0f} s): nothing is changed until it is back"
    OBSERVE_ONLY = "mode {mode}: recommended, not done: {what}"
    PAUSED = "{what} is paused by an administrator"
    # reservations
    RESERVATION_PLANNED = (
        "{dag_id} run {run_id} will need {nodes} node(s) of {node_pool} at {needed}; they are asked for at {ask}"
    )
    RESERVATION_CHANGED = "{dag_id} run {run_id} on {node_pool}: {change}"
    # anything that an adapter says
    NOTE = "{text}"


@dataclass(frozen=True, slots=True)
class Reason:
    """A code and its finished sentence."""

    code: ReasonCode
    sentence: str

    @classmethod
    def of(cls, code: ReasonCode, **figures: object) -> Reason:
        """Fill the code's sentence with figures.

        Raises:
            KeyError: a figure that the sentence needs is missing.
        """
        return cls(code, code.value.format(**figures).replace(" in 0 s", " now"))
