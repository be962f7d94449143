"""One call to the kernel fails while a box is begun: it is refused and says why, or it has all of its walls.

What it lacks of what only observes, its own record names. Nothing is left behind, and the next box is as every other.
"""

import errno
import json
import os
import re
import select
import sys
from pathlib import Path

import pytest

from ringfence.model.errors import BoxError
from ringfence.sandbox.launcher import Launcher

sys.path.append(str(Path(__file__).parents[2] / "doubles"))
import faulty_launcher

pytestmark = pytest.mark.needs_userns
EVERY = 17
"""Of the calls; ``-m slow`` tries each of them."""
CAUSE = re.compile(r"\bE[A-Z]+$|went away|without a word|not permitted")
ERRORS = (errno.ENOMEM, errno.EPERM, errno.EMFILE, errno.ENOSPC)
WALLS = """
import json, os, resource, socket, sys
def read(path):
    try:
        with open(path, "rb") as file:
            return file.read().decode("latin-1")
    except OSError as fault:
        return f"error {fault.errno}"
def tried(work, *arguments):
    try:
        work(*arguments)
    except OSError as fault:
        return fault.errno
    return "done"
def connect(host):
    with socket.socket() as end:
        end.settimeout(5)
        end.connect((host, 80))
status = [line.split(":", 1) for line in read("/proc/self/status").splitlines()]
wanted = ("Cap", "NoNewPrivs", "Seccomp", "Uid", "Gid", "Groups", "SigBlk", "Umask")
names = ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")
print(json.dumps({
    "status": [pair for pair in status if pair[0].startswith(wanted)],
    "mounts": [(line.split(" ")[4:6], line.rpartition(" - ")[2].split(" ")[0]) for line in read("/proc/self/mountinfo").splitlines()],
    "nested": [read(f"/proc/sys/user/max_{name}_namespaces") for name in names],
    "limits": [resource.getrlimit(kind) for kind in range(16)],
    "environment": sorted(os.environ), "files": sorted(os.listdir("/proc/self/fd")), "host": socket.gethostname(),
    "session": os.getsid(0), "processes": [name for name in os.listdir("/proc") if name.isdigit()],
    "refused": [
        tried(open, sys.argv[1]), tried(open, ".env"), tried(open, "/etc/shadow"), tried(os.mkdir, "/usr/x"),
        tried(os.mkdir, "/x"), tried(open, "/proc/1/environ"), not read("/proc/keys").startswith("error") and read("/proc/keys") != "",
        tried(os.setuid, 0), tried(os.chroot, "/"),
    ],
    "seen": [tried(connect, "169.254.169.254"), tried(open, "/home/agent/.aws/credentials"),
        tried(os.mknod, "node", 0o20600, 0)],
}))
"""
HIDDEN = "hidden-path"
"""Not told where /dev/fuse is closed; then nobody answers for a root either."""
TOLD = frozenset({"refused-syscall", "refused-write", "decoy", "floor", HIDDEN})


class Faulty:
    """A launcher that fails as it is asked to, and what is usual of its boxes."""

    def __init__(self, bench, page):
        self.bench, self.page = bench, page
        secret = Path(bench.layer.lower).parent / "secret"
        secret.write_text("planted\n")
        self.plan = bench.plan("/usr/bin/python3", "-I", "-S", "-B", "-c", WALLS, str(secret))
        self.usual = self.look()
        assert self.usual == self.look(), "two boxes differ by themselves"
        assert TOLD - {HIDDEN} <= set(self.usual[1])

    def look(self):
        """What a box says of itself, what its record tells of, and its controls. Raises BoxError where it was refused."""
        null = os.open("/dev/null", os.O_RDWR)
        out, into = os.pipe()
        try:
            box = self.bench.launcher.start(self.plan, stdin=null, stdout=into, stderr=null)
            os.close(into)
            into = -1
            text = all_of(out)
            execution = box.wait(60)
        except BoxError:
            os.close(into)
            into = -1
            assert all_of(out) == b"", "somebody keeps what a refused command was to write to"
            raise
        finally:
            for descriptor in {null, out, into} - {-1}:
                os.close(descriptor)
        seen = sorted({one.kind for one in execution.observations} & TOLD)
        controls = sorted((one.name, one.state.value, one.detail) for one in execution.controls)
        assert text or execution.exit != 0 or execution.ended_by, "its output is lost without a word"
        return json.loads(text) if execution.exit == 0 and text else {}, seen, controls

    def check(self):
        """Refused with its cause and a remedy, or as usual, or less is seen and the controls say so."""
        found, refused = None, None
        try:
            found = self.look()
        except BoxError as fault:
            refused = fault
        if found is None:
            assert refused.remedy
            assert CAUSE.search(refused.what), refused
            return
        said, seen, controls = found
        usual, _seen, usual_controls = self.usual
        if not said:
            return  # the command itself could not be started, and its record says that
        told = controls != usual_controls
        assert {**said, "mounts": []} == {**usual, "mounts": []} or (told and done(said) == done(usual))
        assert (seen == _seen and said["mounts"] == usual["mounts"]) or told


def done(said):
    return [one in {"done", True} for one in said["refused"]]


def all_of(pipe):
    """To its end, which must come."""
    text = b""
    while True:
        assert select.select([pipe], [], [], 60)[0], "nobody lets go of it"
        data = os.read(pipe, 65536)
        if not data:
            return text
        text += data


@pytest.fixture
def faulty(bench, tmp_path, monkeypatch):
    begin, page = faulty_launcher.program(tmp_path)
    monkeypatch.setattr("ringfence.sandbox.launcher.ENTRY", begin)
    with Launcher.spawn(str(tmp_path / "state")) as bench.launcher:
        yield Faulty(bench, page)


def every(faulty, role, step, at_rest):
    """Each ``step``-th call of a role fails, once with each error in turn; afterwards all is as before."""
    launcher = faulty.bench.launcher
    before, number, failed = at_rest(launcher.pid), 1, []
    while True:
        faulty.page.ask(role, number, ERRORS[number % len(ERRORS)])
        faulty.check()
        faulty.check()  # by now of a box that was begun after it was asked for
        most, name = faulty.page.told(role)
        if most < number:
            break
        failed.append(name)
        number += step
    faulty.page.ask(b"", 0, 0)
    faulty.check()
    assert faulty.look() == faulty.usual
    assert at_rest(launcher.pid) == before
    return failed


@pytest.mark.parametrize("role", ["init", "launcher", "answerer"])
def test_a_call_that_fails(faulty, role, at_rest):
    failed = every(faulty, role.encode(), EVERY, at_rest)
    assert len(failed) > 1 or (role == "answerer" and HIDDEN not in faulty.usual[1])


@pytest.mark.slow
@pytest.mark.parametrize("role", faulty_launcher.ROLES)
def test_any_call_that_fails(faulty, role, at_rest):
    assert every(faulty, role, 1, at_rest) or HIDDEN not in faulty.usual[1]
