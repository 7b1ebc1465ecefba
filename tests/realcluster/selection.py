"""Whether tests marked ``realcluster`` run: when the programs are built, or when asked for by REALCLUSTER=1."""

from __future__ import annotations

import os

from realcluster.build import is_built, missing_for_build, missing_for_run

__all__ = ["reason_to_skip"]


def reason_to_skip() -> str:
    """Return why the tests cannot or shall not run, as a sentence; empty when they run.

    Environment variable REALCLUSTER: ``1`` builds what is not built, ``0`` leaves the tests out; without it they run
    where the programs are built already.

    Raises:
        RuntimeError: REALCLUSTER=1 in CI (CI=true), where leaving them out would be a failure.
    """
    wanted = os.environ.get("REALCLUSTER", "")
    if wanted == "0":
        return "left out by REALCLUSTER=0"
    reason = missing_for_run()
    if not reason and not is_built():
        reason = missing_for_build() or (
            "" if wanted else "it is not built; REALCLUSTER=1 builds it (20 minutes, once)"
        )
    if reason and wanted and os.environ.get("CI", "").lower() == "true":
        raise RuntimeError(f"REALCLUSTER=1 in CI, but {reason}")
    return reason
