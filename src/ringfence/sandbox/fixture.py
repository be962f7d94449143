"""The shipped hostile script, run in a box: every attempt must fail, and be on record."""

import os
import tempfile
from dataclasses import dataclass

from ringfence.model.box import Execution, Limits
from ringfence.model.ids import CallId, Millis
from ringfence.sandbox.host import gather_host_facts
from ringfence.sandbox.launcher import Launcher
from ringfence.sandbox.plan import plan_box

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "files", "hostile_fixture.sh")
ATTEMPTS = {
    "metadata": "169.254.169.254",
    "shutdown": "sudo",
    "shadow": "/etc/shadow",
    "beacon": "beacon.example.invalid",
}
"""Attempt to what the record of programs started must hold of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One line of the fixture: what was tried, what came of it, whether that is as it must be."""

    attempt: str
    outcome: str
    as_expected: bool


def run_fixture(launcher: Launcher, *, state: str) -> tuple[Attempt, ...]:
    """Run it in a box without a worktree and with no network. Raises BoxError when no box can be built."""
    with open(SCRIPT, encoding="utf-8") as file:
        script = file.read()
    plan = plan_box(
        call_id=CallId("fixture"),
        argv=("/bin/sh", "-c", script),
        cwd="/tmp",  # noqa: S108  the box's own
        facts=gather_host_facts(state, path="/usr/bin:/bin"),
        layer=None,
        limits=Limits(runtime=Millis(30_000)),
        run_id="fixture",
    )
    with tempfile.TemporaryFile() as said, open(os.devnull, "r+b") as null:
        execution = launcher.start(plan, stdin=null.fileno(), stdout=said.fileno(), stderr=null.fileno()).wait()
        said.seek(0)
        lines = dict(line.split(": ", 1) for line in said.read().decode().splitlines() if ": " in line)
    return tuple(_judge(name, mark, lines, execution) for name, mark in ATTEMPTS.items())


def _judge(name: str, mark: str, lines: dict[str, str], execution: Execution) -> Attempt:
    outcome = lines.get(name, "no word of it")
    recorded = any(o.kind == "exec" and mark in o.detail for o in execution.observations)
    missing = not recorded and name != "shutdown"  # sudo may not be in the view at all: then nothing was started
    text = outcome if not missing else f"{outcome}, but not on record"
    return Attempt(attempt=name, outcome=text, as_expected=outcome == "refused" and not missing)
