#!/usr/bin/env bash
# Runs the test suite; extra words go to pytest. As root and as an ordinary user.
set -euo pipefail
cd "$(dirname "$0")/.."
exec .venv/bin/python -m pytest -q "$@"
