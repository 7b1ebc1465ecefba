#!/bin/sh
# Resolves pyproject.toml for every supported Python and platform into requirements.lock (versions and hashes).
# An exported lock instead of uv.lock: it is the same resolution, but names no download address, so that it installs
# unchanged from any mirror.
set -eu
cd "$(dirname "$0")/.."
uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --group dev --extra postgres \
  --python-version 3.11 pyproject.toml --output-file requirements.lock "$@"
