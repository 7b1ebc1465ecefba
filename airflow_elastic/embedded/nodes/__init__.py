"""Simulated machines: node pools, boot and removal, loss, and what it does to the pods on them."""

from __future__ import annotations
