"""Amounts of resources and the Kubernetes notation for them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

__all__ = ["CPU", "EPHEMERAL_STORAGE", "MEMORY", "NO_RESOURCES", "PODS", "Resources", "format_amount", "parse_quantity"]

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

# Kubernetes' own notation (k8s.io/apimachinery/pkg/api/resource): decimal SI, binary and exponent suffixes.
_SUFFIX = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1),
    "k": Decimal(10) ** 3, "M": Decimal(10) ** 6, "G": Decimal(10) ** 9, "T": Decimal(10) ** 12,
    "P": Decimal(10) ** 15, "E": Decimal(10) ** 18,
    "Ki": Decimal(2) ** 10, "Mi": Decimal(2) ** 20, "Gi": Decimal(2) ** 30, "Ti": Decimal(2) ** 40,
    "Pi": Decimal(2) ** 50, "Ei": Decimal(2) ** 60,
}  # fmt: skip
_QUANTITY = re.compile(r"^([+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:([eE][+-]?\d{1,2})|([numkMGTPE]|[KMGTPE]i)?)$")
_LARGEST = 2**63 - 1


def parse_quantity(text: str | int | float, *, resource: str = "") -> int:
    """Return a Kubernetes quantity as an integer: millicores for ``cpu``, base units (bytes, pieces) otherwise.

    Fractions are rounded up, as Kubernetes does for requests.

    Raises:
        ValueError: not a quantity, negative, not finite, or beyond 2**63 − 1.
    """
    literal = str(text).strip()
    match = _QUANTITY.match(literal) if len(literal) <= 64 else None
    if match is None:
        shown = literal if len(literal) <= 40 else literal[:37] + "…"
        raise ValueError(f"{shown!r} is not a Kubernetes quantity; write for example 500m, 2, 1.5Gi or 20G")
    number, exponent, suffix = match.groups()
    try:
        value = Decimal(number + exponent) if exponent else Decimal(number) * _SUFFIX[suffix or ""]
    except InvalidOperation as error:  # pragma: no cover - the pattern admits nothing that Decimal refuses
        raise ValueError(f"{literal!r} is not a Kubernetes quantity") from error
    if value < 0:
        raise ValueError(f"{literal!r} is negative; a quantity is 0 or more")
    amount = math.ceil(value * 1000) if resource == CPU else math.ceil(value)
    if amount > _LARGEST:
        raise ValueError(f"{literal!r} is more than Kubernetes can hold (2^63 − 1)")
    return amount


def format_amount(resource: str, amount: int) -> str:
    """Return an amount in the notation people write: ``1500m`` → ``1.5`` for cpu, ``2Gi`` for bytes."""
    if resource == CPU:
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if resource in (MEMORY, EPHEMERAL_STORAGE):
        for suffix in ("Ti", "Gi", "Mi", "Ki"):
            unit = int(_SUFFIX[suffix])
            if amount >= unit and amount % unit == 0:
                return f"{amount // unit}{suffix}"
    return str(amount)


@dataclass(frozen=True, slots=True)
class Resources:
    """An immutable vector of resource amounts, keyed by Kubernetes resource name, zero where not named.

    ``amounts`` is sorted by name and holds no zeros, so equal vectors are equal objects.
    """

    amounts: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, amounts: Mapping[str, int] | Iterable[tuple[str, int]] = (), **named: int) -> Resources:
        """Build from integer amounts (millicores for cpu, bytes, pieces); keyword names use ``_`` for ``-``."""
        merged = dict(amounts)
        merged.update({name.replace("_", "-"): amount for name, amount in named.items()})
        return cls(tuple(sorted((name, int(amount)) for name, amount in merged.items() if amount)))

    @classmethod
    def parse(cls, quantities: Mapping[str, str | int | float]) -> Resources:
        """Build from Kubernetes quantities, e.g. ``{"cpu": "500m", "memory": "1Gi"}``.

        Raises:
            ValueError: a quantity that Kubernetes would refuse.
        """
        return cls.of({name: parse_quantity(text, resource=name) for name, text in quantities.items()})

    def get(self, name: str) -> int:
        """Return the amount of one resource, 0 where it is not named."""
        for key, amount in self.amounts:
            if key == name:
                return amount
        return 0

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the resources that are not zero, sorted."""
        return tuple(name for name, _ in self.amounts)

    def __add__(self, other: Resources) -> Resources:
        total = dict(self.amounts)
        for name, amount in other.amounts:
            total[name] = total.get(name, 0) + amount
        return Resources.of(total)

    def __sub__(self, other: Resources) -> Resources:
        rest = dict(self.amounts)
        for name, amount in other.amounts:
            rest[name] = rest.get(name, 0) - amount
        return Resources.of(rest)

    def times(self, factor: int) -> Resources:
        """Return every amount multiplied by a whole number."""
        return Resources.of({name: amount * factor for name, amount in self.amounts})

    def fits_in(self, room: Resources) -> bool:
        """Tell whether ``room`` holds at least this much of every resource."""
        return all(amount <= room.get(name) for name, amount in self.amounts)

    def clipped(self) -> Resources:
        """Return the same with negative amounts as zero."""
        return Resources.of({name: amount for name, amount in self.amounts if amount > 0})

    def how_often_in(self, room: Resources) -> int:
        """Return how many whole copies of this vector ``room`` holds (0 for an empty vector)."""
        counts = [max(0, room.get(name)) // amount for name, amount in self.amounts if amount > 0]
        return min(counts) if counts else 0

    def slots_of(self, slot_shape: Resources) -> int:
        """Return how many slots of ``slot_shape`` this request takes: the largest ratio, rounded up, at least 1.

        A resource that the slot shape does not name is not counted in slots.
        """
        return max([1, *(-(-self.get(name) // amount) for name, amount in slot_shape.amounts if amount > 0)])

    def as_text(self) -> str:
        """Return the vector as people write it: ``cpu 1500m, memory 2Gi``."""
        return ", ".join(f"{name} {format_amount(name, amount)}" for name, amount in self.amounts) or "nothing"


NO_RESOURCES = Resources()
