"""Simulated kubelets: containers that run as local processes, or last for an annotated time."""

from __future__ import annotations
