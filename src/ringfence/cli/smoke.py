"""``ringfence smoke``: probe a box now, and show what each probe found. ``--fixture`` shows the hostile script fail."""

import argparse
import json

from ringfence.cli.text import escape
from ringfence.model.errors import RingfenceError
from ringfence.supervisor import client
from ringfence.supervisor.paths import Paths


def configure(parser: argparse.ArgumentParser) -> None:
    """``--json``, ``--fixture``."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--fixture", action="store_true", help="also run the shipped hostile script and show its outcome"
    )


def run(args: argparse.Namespace, paths: Paths) -> int:
    """0 when every probe passed; 13 when one failed: then nothing runs in a box on this host."""
    answer = client.request(paths, "smoke", seconds=120)
    lines = _fixture(paths) if args.fixture else []
    failed_fixture = [line for line in lines if not line["as_expected"]]
    if args.json:
        print(json.dumps({**answer, "fixture": lines} if args.fixture else answer))
    else:
        _show(answer)
        for line in lines:
            mark = "ok    " if line["as_expected"] else "FAILED"
            print(f"{mark} fixture: {escape(str(line['try']))}: {escape(str(line['outcome']))}")
    return 0 if answer.get("passed") and not failed_fixture else 13


def _show(answer: dict[str, object]) -> None:
    probes = answer.get("probes")
    for probe in probes if isinstance(probes, list) else []:
        mark = "ok    " if probe.get("passed") else "FAILED"
        detail = f": {probe.get('detail')}" if probe.get("detail") else ""
        print(f"{mark} {escape(str(probe.get('name')) + detail)}")
    verdict = "passed" if answer.get("passed") else "failed: nothing runs in a box until this host is put right"
    print(f"smoke test {verdict} (level {escape(str(answer.get('level')))})")


def _fixture(paths: Paths) -> list[dict[str, object]]:
    from ringfence.sandbox.fixture import run_fixture
    from ringfence.sandbox.launcher import Launcher

    try:
        with Launcher.spawn(paths.state) as launcher:
            return [
                {"try": line.attempt, "outcome": line.outcome, "as_expected": line.as_expected}
                for line in run_fixture(launcher, state=paths.state)
            ]
    except RingfenceError as fault:
        return [{"try": "start a box", "outcome": fault.what, "as_expected": False}]
