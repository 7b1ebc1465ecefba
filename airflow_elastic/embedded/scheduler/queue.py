"""Waiting pods: by priority, then age; pods that are alike share a bucket, so that one failure speaks for all."""

from __future__ import annotations

import heapq
from typing import Any

from airflow_elastic.embedded.scheduler.infos import PodInfo

__all__ = ["Bucket", "Queue"]


class Bucket:
    """Waiting pods of one shape, oldest first."""

    __slots__ = ("blocked", "message", "pods", "shape")

    def __init__(self, shape: tuple[Any, ...]) -> None:
        self.shape = shape
        self.pods: dict[str, PodInfo] = {}
        self.blocked = False
        """The first pod found no node, and nothing has changed since."""
        self.message = ""

    @property
    def head(self) -> PodInfo | None:
        """Return the pod whose turn is next."""
        return next(iter(self.pods.values()), None)


class Queue:
    """All waiting pods."""

    def __init__(self) -> None:
        self._buckets: dict[tuple[Any, ...], Bucket] = {}
        self._heap: list[tuple[int, int, str, int, Bucket]] = []
        self._pushed = 0

    def __len__(self) -> int:
        return sum(len(bucket.pods) for bucket in self._buckets.values())

    @property
    def has_work(self) -> bool:
        """Tell whether a pod may be tried."""
        return bool(self._heap)

    def add(self, pod: PodInfo) -> Bucket:
        """Let a pod wait; returns its bucket."""
        # A pod with a nominated node waits for just that: it must not block its likes, nor they it.
        shape = (*pod.shape, pod.uid) if pod.nominated else pod.shape
        bucket = self._buckets.get(shape)
        if bucket is None:
            bucket = self._buckets[shape] = Bucket(shape)
        first = not bucket.pods
        bucket.pods[pod.uid] = pod
        pod.bucket = bucket
        if first and not bucket.blocked:
            self._push(bucket)
        return bucket

    def discard(self, pod: PodInfo) -> None:
        """Let a pod wait no longer."""
        bucket = pod.bucket
        if not isinstance(bucket, Bucket):
            return
        pod.bucket = None
        was_head = bucket.head is pod
        bucket.pods.pop(pod.uid, None)
        if not bucket.pods:
            self._buckets.pop(bucket.shape, None)
        elif was_head and not bucket.blocked:
            self._push(bucket)

    def next(self) -> PodInfo | None:
        """Return the pod to try now, which stays in the queue until it is discarded or its bucket is blocked."""
        while self._heap:
            _, _, uid, _, bucket = self._heap[0]
            head = bucket.head
            if head is not None and head.uid == uid and not bucket.blocked:
                return head
            heapq.heappop(self._heap)
        return None

    def block(self, bucket: Bucket, message: str) -> None:
        """Leave a bucket alone until something changes."""
        bucket.blocked = True
        bucket.message = message

    def unblock_all(self) -> None:
        """Try everything again: capacity has come or been freed."""
        for bucket in self._buckets.values():
            if bucket.blocked:
                bucket.blocked = False
                self._push(bucket)

    def buckets(self) -> list[Bucket]:
        """Return all buckets."""
        return list(self._buckets.values())

    def _push(self, bucket: Bucket) -> None:
        head = bucket.head
        if head is not None:
            # The running number keeps buckets out of the comparison: one pod may wait in two, one after the other.
            self._pushed += 1
            heapq.heappush(self._heap, (-head.priority, head.created, head.uid, self._pushed, bucket))
