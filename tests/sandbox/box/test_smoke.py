"""The smoke test passes here, fails when a wall is missing, and leaves nothing."""

import errno
import os
import subprocess

import pytest

from ringfence.sandbox import smoke, smoke_probe
from ringfence.sandbox.fixture import run_fixture
from ringfence.sandbox.smoke import run_smoke

pytestmark = pytest.mark.needs_userns

NAMED = {
    "no-secrets-reachable",
    "no-escalation",
    "metadata-refused",
    "tries-recorded",
    "teardown-rehearsed",
    "host-sockets-absent",
    "shadow-unreadable",
    "no-nested-namespaces",
    "git-rename-caught",
    "nothing-outlives",
    "level-as-promised",
}


def test_every_probe_passes_and_nothing_is_left(box_launcher, tmp_path):
    run_smoke(box_launcher, state=str(tmp_path))
    report = run_smoke(box_launcher, state=str(tmp_path))
    assert [p for p in report.probes if not p.passed] == []
    assert report.passed
    assert {p.name for p in report.probes} >= NAMED
    assert report.duration > 0
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("hole", "probe"),
    [
        ("caller", "no-secrets-reachable"),
        ("unmasked", "no-secrets-reachable"),
        ("granted", "no-secrets-reachable"),
        ("as it is", "host-sockets-absent"),
        ("direct", "git-rename-caught"),
    ],
)
def test_a_hole_is_found(box_launcher, tmp_path, monkeypatch, hole, probe):
    from dataclasses import replace

    real = smoke.plan_box

    def plan_with_hole(**options):
        plan = real(**options)
        word = options["caller_env"]["SMOKE_API_KEY"]
        folder = os.path.dirname(options["layer"].target)
        match hole:
            case "caller":
                return replace(plan, env=(*plan.env, ("SMOKE_API_KEY", word)))
            case "unmasked":
                return replace(plan, layer=replace(plan.layer, masked=()))
            case "granted":
                return real(**{**options, "read_only": (*options["read_only"], folder)})
            case "as it is":
                folders = real(**{**options, "read_only": (*options["read_only"], folder)}).mounts
                shown = tuple(replace(one, kind="ro") if one.source == folder else one for one in folders)
                return replace(plan, mounts=shown)
            case _:
                return replace(plan, layer=replace(plan.layer, direct=True, masked=(), replaced=()))

    monkeypatch.setattr(smoke, "plan_box", plan_with_hole)
    report = run_smoke(box_launcher, state=str(tmp_path))
    assert not report.passed
    assert probe in {p.name for p in report.probes if not p.passed}
    assert os.listdir(tmp_path) == []


def test_a_launcher_that_is_gone_is_a_failed_test(tmp_path):
    from ringfence.sandbox.launcher import Launcher

    launcher = Launcher.spawn(str(tmp_path))
    launcher.close()
    report = run_smoke(launcher, state=str(tmp_path / "s"))
    assert not report.passed
    assert [p.name for p in report.probes if not p.passed] == ["box-built"]


def test_the_hostile_script_gets_nowhere_and_is_on_record(box_launcher, tmp_path):
    lines = run_fixture(box_launcher, state=str(tmp_path))
    assert [line for line in lines if not line.as_expected] == []
    assert [line.attempt for line in lines] == ["metadata", "shutdown", "shadow", "beacon"]


def test_a_sudo_that_hangs_is_no_escalation_and_no_fault(monkeypatch):
    def hang(command, **how):
        raise subprocess.TimeoutExpired(command, how["timeout"])

    monkeypatch.setattr(smoke_probe.subprocess, "run", hang)
    assert "sudo" not in smoke_probe.escalation()


def test_what_cannot_be_read_is_not_taken_for_gone(monkeypatch):
    assert smoke._born(2**22 + 1) == ""
    faults = {"stat": errno.EMFILE, "mounts": errno.EIO}

    def refuse(path, *_words, **_named):
        raise OSError(faults[os.path.basename(path)], "no", path)

    monkeypatch.setattr(smoke, "open", refuse, raising=False)
    look = smoke.Look(wrong=(), processes=frozenset({(os.getpid(), "1")}), groups="")
    with pytest.raises(OSError, match="no"):
        smoke._remaining(look)
    with pytest.raises(OSError, match="no"):
        smoke._text("/proc/self/mounts")
