"""The real cluster by hand: ``python tests/realcluster build``, ``… up``, ``… up -- kubectl get nodes``."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    # Run as a folder, this file knows nothing of the package around it.
    sys.path[0] = str(Path(__file__).parents[1])
    from realcluster.command import main

    sys.exit(main())
