"""The API server's surface: raw ASGI on uvicorn, no framework."""

from __future__ import annotations
