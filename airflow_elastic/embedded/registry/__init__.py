"""Which resources exist, and what the API server adds to and refuses in each kind of object."""

from __future__ import annotations
