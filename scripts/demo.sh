#!/bin/sh
# Sets up and runs the demo on the embedded cluster; arguments go to `airflow elastic demo` (try --once).
set -eu
cd "$(dirname "$0")/.."
unset PYTHONDONTWRITEBYTECODE
sh scripts/setup.sh
# Airflow's command writes its configuration file where AIRFLOW_HOME points: not into the user's home. The demo's own
# Airflow has a temporary one.
AIRFLOW_HOME="$PWD/.venv/airflow-home"
export AIRFLOW_HOME
exec .venv/bin/airflow elastic demo "$@"
