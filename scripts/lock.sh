#!/usr/bin/env bash
# Writes requirements.lock: every package of the test environment, pinned with hashes. Names no index.
set -euo pipefail
cd "$(dirname "$0")/.."
.venv/bin/python -m pip install -q pip-tools
extra=$(mktemp --suffix=.in)
trap 'rm -f "$extra"' EXIT
.venv/bin/python -c 'import tomllib; d = tomllib.load(open("pyproject.toml", "rb")); print("\n".join(d["dependency-groups"]["dev"] + ["editables", "setuptools"] + d["build-system"]["requires"]))' >"$extra"
.venv/bin/pip-compile -q --generate-hashes --strip-extras --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-emit-options \
  --all-extras --allow-unsafe --no-annotate --no-header -o requirements.lock pyproject.toml "$extra"
