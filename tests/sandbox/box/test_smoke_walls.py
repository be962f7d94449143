"""Each probe of the smoke test fails, by name, when exactly the wall behind it is broken: in a copy of what builds boxes."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ringfence.model.box import Mount
from ringfence.sandbox import launcher as launching
from ringfence.sandbox import smoke
from ringfence.sandbox.inner import groups, landlock
from ringfence.sandbox.launcher import Launcher
from ringfence.sandbox.smoke import run_smoke
from ringfence.sandbox.worktree.tree import Worktree

pytestmark = pytest.mark.needs_userns
SANDBOX = Path(launching.__file__).parent


def copy_with_holes(folder, *edits):
    """A copy of what the launcher runs, with a wall broken; gives where the launcher begins."""
    inner = folder / "ringfence" / "sandbox" / "inner"
    shutil.copytree(SANDBOX / "inner", inner, ignore=lambda *_: {"__pycache__"})
    for file, old, new in edits:
        text = (inner / file).read_text(encoding="utf-8")
        assert text.count(old) == 1, file
        (inner / file).write_text(text.replace(old, new), encoding="utf-8")
    return str(inner / "entry.py")


def failed(report):
    return {probe.name: probe.detail for probe in report.probes if not probe.passed}


PROC = 'kernel.mount(b"proc", place, b"proc", PLAIN | kernel.MS_NOEXEC, None)'
FILTER = 'order["filter"]'
EVERYTHING_ALLOWED = "(6).to_bytes(2, sys.byteorder) + bytes(2) + (0x7FFF0000).to_bytes(4, sys.byteorder)"
HOLES = {
    "descriptors stay open": ("init.py", "kernel.close_range(WATCHER + 1, 0x7FFFFFFF, 0)", "pass", {"no-secrets-reachable": "descriptor"}),
    "capabilities are kept": ("init.py", "    _drop_capabilities()\n    watches", "    watches", {"no-escalation": "Cap", "level-as-promised": "Cap"}),
    "the filter lets everything pass": ("init.py", FILTER, EVERYTHING_ALLOWED, {"tries-recorded": "no exec recorded; no refused-syscall"}),
    "nesting is not forbidden": ("init.py", "    _forbid_nesting()\n", "", {"no-nested-namespaces": "max_user_namespaces"}),
    "the host's /proc": ("view.py", PROC, 'kernel.mount(b"/proc", place, None, 0x5000, None)', {"host-processes-hidden": ""}),
    "a namespace is shared": ("zygote.py", " | kernel.CLONE_NEWIPC", "", {"level-as-promised": "shares the host's ipc namespace"}),
    "decoys are not watched": ("init.py", "            if kind:\n", "            if not kind:\n", {"tries-recorded": "no decoy"}),
    "refused packets are not told": ("refusals.py", "self.told(*seen, 1)", "pass", {"tries-recorded": "no floor"}),
    "changes are not told": ("watch.py", "and found is not None:\n            self.record.add(*found)", "and found == 0:\n            pass", {"tries-recorded": "no refused-write"}),
    "no Landlock": ("landlock.py", "    kernel.landlock_restrict_self(ruleset, 0)\n", "", {"level-as-promised": "Landlock let it make /tmp/smoke-device"}),
    "no control group": ("init.py", '            _write(procs, b"0")\n', "            pass\n", {"level-as-promised": "is in no control group of its own"}),
}  # fmt: skip


@pytest.mark.parametrize("hole", HOLES)
def test_a_broken_wall_fails_the_probe_that_looks_at_it(hole, tmp_path, monkeypatch):
    file, old, new, expected = HOLES[hole]
    if hole == "no Landlock" and landlock.abi() < landlock.USABLE_ABI:
        pytest.skip("this kernel has no Landlock to break")
    if hole == "no control group" and groups.mechanism() == "polling":
        pytest.skip("no control groups here")
    monkeypatch.setattr(launching, "ENTRY", copy_with_holes(tmp_path / "copy", (file, old, new)))
    with Launcher.spawn(str(tmp_path / "state")) as launcher:
        found = failed(run_smoke(launcher, state=str(tmp_path / "smoke")))
    assert set(found) == set(expected), found
    for probe, words in expected.items():
        assert words in found[probe]
    assert os.listdir(tmp_path / "smoke") == []


def granted_for_writing(plan):
    folder = f"{os.path.dirname(plan.layer.target)}/open"
    return replace(plan, mounts=(*plan.mounts, Mount(kind="rw", target=folder, source=folder)))


def with_a_shadow(plan):
    etc = next(mount for mount in plan.mounts if mount.target == "/etc")
    other = f"{os.path.dirname(plan.layer.target)}/etc"
    shutil.copytree(etc.source, other, symlinks=True)
    Path(f"{other}/shadow").write_text("root:planted:1::::::\n")
    for place in (other, f"{other}/shadow"):
        os.chmod(place, 0o755)  # whatever the umask
    return replace(plan, mounts=tuple(replace(m, source=other) if m is etc else m for m in plan.mounts))


PLANS = {
    "a folder outside is writable": (granted_for_writing, "no-writes-outside"),
    "the passwords of users are in view": (with_a_shadow, "shadow-unreadable"),
}


@pytest.mark.parametrize("hole", PLANS)
def test_a_view_that_holds_too_much_fails_the_probe_that_looks_for_it(hole, box_launcher, tmp_path, monkeypatch):
    change, probe = PLANS[hole]
    real = smoke.plan_box
    monkeypatch.setattr(smoke, "plan_box", lambda **options: change(real(**options)))
    umask = os.umask(0o077)
    try:
        found = failed(run_smoke(box_launcher, state=str(tmp_path)))
    finally:
        os.umask(umask)
    assert set(found) == {probe}, found
    assert os.listdir(tmp_path) == []


def test_a_layer_that_stays_fails_the_teardown(box_launcher, tmp_path, monkeypatch):
    monkeypatch.setattr(Worktree, "end", lambda self, layer: None)
    assert set(failed(run_smoke(box_launcher, state=str(tmp_path)))) == {"teardown-rehearsed"}


def test_a_process_that_stays_fails_what_looks_for_it(box_launcher, tmp_path, monkeypatch):
    stays = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    real = launching.Box.pids
    monkeypatch.setattr(launching.Box, "pids", lambda self: (*real(self), stays.pid))
    monkeypatch.setattr(smoke, "GONE_SECONDS", 0.5)
    try:
        found = failed(run_smoke(box_launcher, state=str(tmp_path)))
    finally:
        stays.communicate(b"\n")
    assert set(found) == {"nothing-outlives"}
    assert f"process {stays.pid}" in found["nothing-outlives"]


def test_a_probe_that_fails_in_the_middle_leaves_no_box(box_launcher, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(smoke, "_look", lambda box: seen.append(box.pids()) or {}["nothing"])
    assert set(failed(run_smoke(box_launcher, state=str(tmp_path)))) == {"box-built"}
    assert len(seen[0]) >= 3
    assert not [pid for pid in seen[0] if smoke._born(pid)]
    assert os.listdir(tmp_path) == []


BACK_INTO_THE_HOSTS_NETWORK = (
    ("zygote.py", " | kernel.CLONE_NEWNET", ""),
    (
        "init.py",
        "    box: socket.socket | None = None\n",
        "    global HOST\n    box: socket.socket | None = None\n",
    ),
    (
        "init.py",
        "        _take_descriptors(channel, watcher)\n",
        (
            "        _take_descriptors(channel, watcher)\n"
            "        HOST = os.open('/proc/self/ns/net', os.O_RDONLY)\n"
            "        kernel.unshare(kernel.CLONE_NEWNET)\n"
        ),
    ),
    (
        "init.py",
        "    kernel.unshare(kernel.CLONE_NEWCGROUP)\n",
        "    kernel.unshare(kernel.CLONE_NEWCGROUP)\n    kernel.setns(HOST, kernel.CLONE_NEWNET)\n    os.close(HOST)\n",
    ),
)
IN_A_CLOUD = """
import socket, subprocess, sys
from ringfence.sandbox import launcher as launching
from ringfence.sandbox.smoke import run_smoke
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
subprocess.run(["ip", "addr", "add", "169.254.169.254/32", "dev", "lo"], check=True)
cloud = socket.create_server(("169.254.169.254", 80))
entry, state = sys.argv[1:]
launching.ENTRY = entry or launching.ENTRY
with launching.Launcher.spawn(state) as launcher:
    report = run_smoke(launcher, state=state + "/smoke")
print(*sorted(probe.name for probe in report.probes if not probe.passed))
"""


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="makes a network of its own")
@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ((), []),
        (
            BACK_INTO_THE_HOSTS_NETWORK,
            ["host-network-absent", "level-as-promised", "metadata-refused", "tries-recorded"],
        ),
    ],
)
def test_a_metadata_service_that_is_reached_fails_its_probe(edits, expected, tmp_path):
    entry = copy_with_holes(tmp_path / "copy", *edits) if edits else ""
    command = ["unshare", "--net", sys.executable, "-c", IN_A_CLOUD, entry, str(tmp_path / "state")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.split() == expected, done.stderr
