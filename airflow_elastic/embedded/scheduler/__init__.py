"""A kube-scheduler: filters, scores, binds, preempts, and says why a pod found no node."""

from __future__ import annotations
