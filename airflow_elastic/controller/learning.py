"""What the controller learns: how long pods run, how wide tasks are mapped, how long nodes take to come."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from typing import Any

from airflow_elastic.kubernetes.cluster import FinishedPod, NodeArrival
from airflow_elastic.model.demand import DurationEstimate, Run
from airflow_elastic.model.settings import Settings
from airflow_elastic.planning.profile import Profiles

__all__ = ["Learner"]

_MOST_REMEMBERED = 50_000
_LONGEST_BOOT_SECONDS = 3600.0


class Learner:
    """Feeds the profiles with what is seen, each thing once, over restarts too."""

    def __init__(self, default_seconds: float) -> None:
        self.profiles = Profiles.empty(default_seconds)
        self.changed = False
        self._observed_until = 0.0
        """Pods that ended before were counted by an earlier process."""
        self._latest_end = 0.0
        self._seen_pods: deque[str] = deque(maxlen=_MOST_REMEMBERED)
        self._seen_pod_set: set[str] = set()
        self._seen_widths: dict[tuple[str, str, str], int] = {}
        self._asked: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=1000))

    def load(self, document: dict[str, Any] | None) -> bool:
        """Take up what an earlier process saved; return whether there was anything."""
        profiles = (document or {}).get("profiles")
        if not isinstance(profiles, dict):
            return False
        self.profiles = Profiles.from_json(profiles)
        until = (document or {}).get("observed_until")
        self._observed_until = float(until) if isinstance(until, int | float) else 0.0
        return True

    def to_document(self) -> dict[str, Any]:
        """Return what ``load`` takes up again."""
        return {"profiles": self.profiles.to_json(), "observed_until": max(self._observed_until, self._latest_end)}

    def from_history(self, history: Iterable[tuple[str, str, float, float]]) -> int:
        """Take Airflow's own past as a beginning; return how many observations it gave."""
        count = 0
        for dag_id, task_id, seconds, finished_at in history:
            self._duration(dag_id, task_id, "", seconds, finished_at)
            self._observed_until = max(self._observed_until, finished_at)
            count += 1
        return count

    def pods(self, finished: Iterable[FinishedPod]) -> None:
        """Learn the running times of pods that succeeded."""
        for each in finished:
            owner = each.pod.owner
            if owner is None or each.ended_at <= self._observed_until - 1.0 or each.uid in self._seen_pod_set:
                continue
            if len(self._seen_pods) == _MOST_REMEMBERED:
                self._seen_pod_set.discard(self._seen_pods[0])
            self._seen_pods.append(each.uid)
            self._seen_pod_set.add(each.uid)
            self._latest_end = max(self._latest_end, each.ended_at)
            seconds = max(0.0, each.ended_at - each.started_at)
            self._duration(owner.dag_id, owner.task_id, each.pod.capacity_class, seconds, each.ended_at)

    def widths(self, runs: Iterable[Run]) -> None:
        """Learn how many instances mapped tasks expanded to, once for each run."""
        current: dict[tuple[str, str, str], int] = {}
        for run in runs:
            if not run.tasks:
                continue
            mapped = {task.task_id for task in run.shape.tasks if task.is_mapped}
            counts: dict[str, int] = defaultdict(int)
            for task in run.tasks if mapped else ():
                if task.task_id in mapped and task.map_index >= 0:
                    counts[task.task_id] += 1
            for task_id, width in counts.items():
                key = (run.dag_id, run.run_id, task_id)
                current[key] = width
                if self._seen_widths.get(key) != width:
                    self.profiles.observe_width(run.dag_id, task_id, width)
                    self.changed = True
        self._seen_widths = current

    def asked(self, node_pool: str, nodes: int, now: float) -> None:
        """Note that ``nodes`` more nodes were asked for."""
        self._asked[node_pool].extend([now] * max(0, min(nodes, 1000)))

    def withdrawn(self, node_pool: str, nodes: int) -> None:
        """Note that ``nodes`` of those asked for last are not wanted any more."""
        waiting = self._asked[node_pool]
        for _ in range(min(nodes, len(waiting))):
            waiting.pop()

    def forget_requests(self) -> None:
        """The clock was set, or this process stood still: how long the nodes asked for took is not known any more."""
        self._asked.clear()

    def arrivals(self, arrived: Iterable[NodeArrival]) -> None:
        """Learn boot times: from the oldest request that no node has answered yet to usable."""
        for node in arrived:
            waiting = self._asked[node.node_pool]
            while waiting and node.usable_at - waiting[0] > _LONGEST_BOOT_SECONDS:
                waiting.popleft()
            # A node whose request we did not see (made before a restart, or by others) tells no boot time.
            if waiting and waiting[0] <= node.usable_at:
                seconds = node.usable_at - waiting.popleft()
                self.profiles.observe_boot(node.node_pool, seconds)
                self.changed = True

    def boots(self, settings: Settings) -> tuple[tuple[str, DurationEstimate], ...]:
        """Return the boot time estimate of each node pool."""
        return tuple((pool.name, self.profiles.boot_estimate(pool.name, pool)) for pool in settings.node_pools)

    def _duration(self, dag_id: str, task_id: str, capacity_class: str, seconds: float, finished_at: float) -> None:
        self.profiles.observe(dag_id, task_id, capacity_class, seconds, finished_at)
        self.changed = True
