#!/bin/sh
# Sets up and runs the demo on the embedded cluster; arguments go to `airflow elastic demo` (try --once).
set -eu
cd "$(dirname "$0")/.."
unset PYTHONDONTWRITEBYTECODE
sh scripts/setup.sh
exec .venv/bin/python -m airflow_elastic.demo "$@"
