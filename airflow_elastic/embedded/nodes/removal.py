"""Which machine goes first when a node pool shrinks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_elastic.embedded.nodes.machine import Machine, MachineState

if TYPE_CHECKING:
    from airflow_elastic.embedded.plane import ControlPlane

__all__ = ["RELEASE_ANNOTATION", "removal_order"]

RELEASE_ANNOTATION = "airflow-elastic.io/release"


def removal_order(plane: ControlPlane, machines: list[Machine]) -> list[Machine]:
    """Return machines in the order in which a shrinking pool gives them up.

    First those still booting, the last requested first; then those released by annotation, cordoned and empty ones,
    empty ones, and last the youngest.
    """
    return sorted(machines, key=lambda machine: (_rank(plane, machine), -machine.index))


def _rank(plane: ControlPlane, machine: Machine) -> tuple[int, int]:
    if machine.state is MachineState.BOOTING:
        return 0, 0
    entry = plane.store("nodes").get(("", machine.name))
    if entry is None:
        return 0, 1
    empty = plane.scheduler.is_empty(machine.name)
    if RELEASE_ANNOTATION in (entry.obj["metadata"].get("annotations") or {}):
        return 1, 0 if empty else 1
    if machine.state is MachineState.LOST:
        return 2, 0
    if empty:
        return (3, 0) if entry.obj["spec"].get("unschedulable") else (4, 0)
    return 5, 0
