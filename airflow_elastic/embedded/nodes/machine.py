"""One simulated machine and how long it takes to boot."""

from __future__ import annotations

import asyncio
import enum
import math
import random
from dataclasses import dataclass, field

from airflow_elastic.embedded.config import NodePoolConfig

__all__ = ["Machine", "MachineState", "boot_seconds"]

_Z95 = 1.6448536269514722


class MachineState(enum.Enum):
    """Where a machine is in its life."""

    BOOTING = "booting"
    REGISTERED = "registered"
    READY = "ready"
    LOST = "lost"
    REMOVING = "removing"
    GONE = "gone"


@dataclass(slots=True, eq=False)
class Machine:
    """A machine of a node pool; billed from the launch request until it is gone."""

    name: str
    pool: str
    index: int
    state: MachineState = MachineState.BOOTING
    timer: asyncio.TimerHandle | None = field(default=None, repr=False)

    @property
    def counted(self) -> bool:
        """Tell whether the pool counts it towards its replicas."""
        return self.state not in (MachineState.REMOVING, MachineState.GONE)

    def cancel_timer(self) -> None:
        """Forget the next step that was planned."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


def boot_seconds(pool: NodePoolConfig, rng: random.Random) -> float:
    """Draw a boot time: lognormal with the pool's median and 95th percentile."""
    if pool.boot_seconds_median <= 0:
        return 0.0
    sigma = math.log(pool.slow_boot_seconds / pool.boot_seconds_median) / _Z95
    return pool.boot_seconds_median * math.exp(sigma * rng.gauss(0, 1))
