#!/bin/sh
# Makes .venv with everything pinned in requirements.lock and this checkout in it. Needs Python 3.11 or newer only.
set -eu
cd "$(dirname "$0")/.."
# Airflow imports take four times as long without compiled bytecode.
unset PYTHONDONTWRITEBYTECODE

# Nothing to do when the environment was made from the same lock.
stamp=.venv/.made-from
want="$(cat requirements.lock pyproject.toml | cksum)"
[ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ] && exit 0

python=""
for candidate in python3 python3.13 python3.12 python3.11; do
  if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
    python="$candidate"
    break
  fi
done
[ -n "$python" ] || { echo "setup: needs Python 3.11, 3.12 or 3.13 on the PATH; install one and run this again" >&2; exit 1; }

echo "setup: making .venv with $("$python" --version) (a minute or two the first time)" >&2
[ -x .venv/bin/python ] || "$python" -m venv .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check uv
.venv/bin/uv pip install --quiet --compile-bytecode --python .venv/bin/python --requirement requirements.lock
.venv/bin/uv pip install --quiet --compile-bytecode --python .venv/bin/python --no-deps --editable .
.venv/bin/python -m compileall -q airflow_elastic
echo "$want" > "$stamp"
