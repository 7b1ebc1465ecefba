"""Resource vectors as rows of numbers, so that thousands of nodes and pods are compared at once."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from airflow_elastic.model.resources import EPHEMERAL_STORAGE, PODS, Resources

__all__ = ["FloatArray", "IntArray", "ResourceIndex", "one_pod", "room_amount"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# What a shape in the capacity file need not name: the kubelet's default for pods, and disk that nobody counted.
_UNNAMED_ROOM = {PODS: 110, EPHEMERAL_STORAGE: 2**60}


def room_amount(room: Resources, name: str) -> int:
    """Return how much of a resource a node's shape offers, with Kubernetes' default where it need not be named."""
    return room.get(name) or _UNNAMED_ROOM.get(name, 0)


@lru_cache(maxsize=4096)
def one_pod(requests: Resources) -> Resources:
    """Return the requests of one pod with the pod itself counted (``pods: 1``)."""
    return requests if requests.get(PODS) else requests + Resources.of({PODS: 1})


class ResourceIndex:
    """Fixes the order of resource names for one plan and turns vectors into rows of floats.

    Floats are exact up to 2**53, which is 9 PB in bytes; beyond that a comparison errs by less than a part in 10**15.
    """

    def __init__(self, vectors: Iterable[Resources]) -> None:
        names = {name for vector in vectors for name in vector.names}
        names.add(PODS)
        self.names: tuple[str, ...] = tuple(sorted(names))
        self._rows: dict[Resources, FloatArray] = {}
        self._rooms: dict[Resources, FloatArray] = {}

    def amounts(self, vector: Resources) -> FloatArray:
        """Return requests (or foreign load) as a row that is not to be changed."""
        row = self._rows.get(vector)
        if row is None:
            known = dict(vector.amounts)
            row = self._rows[vector] = np.array([known.get(name, 0) for name in self.names], dtype=np.float64)
        return row

    def room(self, vector: Resources) -> FloatArray:
        """Return what a node offers as a row not to be changed, with defaults for what its shape need not name."""
        row = self._rooms.get(vector)
        if row is None:
            amounts = [room_amount(vector, name) for name in self.names]
            row = self._rooms[vector] = np.array(amounts, dtype=np.float64)
        return row

    def amounts_of(self, vectors: Iterable[Resources]) -> FloatArray:
        """Return one row each."""
        rows = [self.amounts(vector) for vector in vectors]
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(self.names))
