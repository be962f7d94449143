#!/usr/bin/env bash
# Runs the test suite; extra words go to pytest. As root and as an ordinary user. The run's files lie in a folder of its own, so
# that what another run left behind cannot fail this one; it is removed at the end and kept when something failed. What of it
# cannot be removed (a mount, a process that still writes) stays and fails nothing: the tests have said what they found.
# A test that fails is tried once more, 5 s later: what failed first is shown at the end and is to be looked into (decision 0094).
set -euo pipefail
cd "$(dirname "$0")/.."
files=$(mktemp -d)
status=0
.venv/bin/python -m pytest -q --basetemp "$files/t" --reruns 1 --reruns-delay 5 --rerun-show-tracebacks "$@" || status=$?
if [ "$status" = 0 ]; then
  chmod -R u+rwX "$files" 2>/dev/null || true # folders of overlays are closed to their owner too
  rm -rf "$files" 2>/dev/null || true
fi
exit "$status"
