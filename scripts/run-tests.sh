#!/usr/bin/env bash
# Runs the test suite; extra words go to pytest. As root and as an ordinary user. The run's files lie in a folder of its own, so
# that what another run left behind cannot fail this one; it is removed at the end and kept when something failed. What of it
# cannot be removed (a mount, a process that still writes) is named and fails nothing: the tests have said what they found.
set -euo pipefail
cd "$(dirname "$0")/.."
files=$(mktemp -d)
status=0
.venv/bin/python -m pytest -q --basetemp "$files/t" "$@" || status=$?
[ "$status" != 0 ] || rm -rf "$files" || echo "run-tests: $files could not be removed whole" >&2
exit "$status"
