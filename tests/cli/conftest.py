from __future__ import annotations

import os
import tempfile

# Before anything imports airflow: never the home of whoever runs the tests.
os.environ.setdefault("AIRFLOW_HOME", tempfile.mkdtemp(prefix="airflow-elastic-tests-"))
