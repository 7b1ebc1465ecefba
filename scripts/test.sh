#!/bin/sh
# Sets up and runs every check: lint, types, layers, tests (a live Airflow on Postgres included). With arguments it runs
# pytest alone, with them.
set -eu
cd "$(dirname "$0")/.."
unset PYTHONDONTWRITEBYTECODE
sh scripts/setup.sh
PATH="$PWD/.venv/bin:$PATH"
export PATH
# Airflow writes a configuration and a database where AIRFLOW_HOME points: never into the user's own.
AIRFLOW_HOME="$(mktemp -d)"
export AIRFLOW_HOME
trap 'rm -rf "$AIRFLOW_HOME"' EXIT
if [ $# -gt 0 ]; then
  pytest "$@"
  exit
fi
ruff check .
ruff format --check .
mypy
lint-imports
pytest
