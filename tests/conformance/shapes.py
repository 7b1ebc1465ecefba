"""The nodes that tests may ask for. Pods on them run nothing: they last as long as their annotation says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["SHAPES", "Shape"]


@dataclass(frozen=True, slots=True)
class Shape:
    """What a node offers."""

    cpu: str = "4"
    memory: str = "8Gi"
    pods: int = 20
    extended: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def allocatable(self) -> dict[str, str]:
        """Return the node's allocatable."""
        storage = {"ephemeral-storage": "20Gi"}
        return {"cpu": self.cpu, "memory": self.memory, "pods": str(self.pods), **storage, **self.extended}


SHAPES: Mapping[str, Shape] = {
    "plain": Shape(),
    "few-pods": Shape(pods=2),
    "device": Shape(extended={"example.com/device": "2"}),
    "large": Shape(cpu="16", memory="64Gi", labels={"size": "large", "weight": "16"}),
}
