"""A supervisor serves every client of its user: what the one that happened to start it carried along must not stay in it."""

import os
import pathlib
import re
import resource
import signal
import time

import pytest

from ringfence.supervisor import client
from ringfence.supervisor.paths import user_paths

FAR = 5000
"""A descriptor beyond what a loop over the first few thousand closes."""


def burdened():
    """In the child that becomes the client: signals blocked and ignored, limits of its own, an open file."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
    for number in (signal.SIGHUP, signal.SIGCHLD, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard == resource.RLIM_INFINITY or hard > FAR:
        resource.setrlimit(resource.RLIMIT_NOFILE, (FAR + 1, hard))
        os.dup2(os.open("/etc/hostname", os.O_RDONLY), FAR, inheritable=True)
    for limit, value in ((resource.RLIMIT_FSIZE, 1 << 20), (resource.RLIMIT_CPU, 900)):
        resource.setrlimit(limit, (value, resource.getrlimit(limit)[1]))


@pytest.fixture
def started(cli):
    """The supervisor's pid, started by such a client."""
    cli("stop")
    done = cli.start("mission", "list", preexec_fn=burdened)
    _, said = done.communicate(timeout=60)
    assert done.returncode == 0, said
    return cli.supervisor_pid()


def status(pid, name):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"^{name}:\s*([0-9a-f]+)$", text, re.MULTILINE).group(1), 16)


def test_no_signal_stays_blocked_or_ignored(started):
    """The C library blocks all for a moment while it starts a thread: what stays is what counts."""

    def held():
        blocked = {
            n for n in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1) if status(started, "SigBlk") >> (n - 1) & 1
        }
        ignored = {
            n for n in (signal.SIGHUP, signal.SIGCHLD, signal.SIGUSR2) if status(started, "SigIgn") >> (n - 1) & 1
        }
        return blocked | ignored

    stays = held()
    deadline = time.monotonic() + 30
    while stays and time.monotonic() < deadline:
        stays &= held()
    assert stays == set()


def test_it_ends_when_it_is_told_to(started):
    os.kill(started, signal.SIGTERM)
    deadline = time.monotonic() + 30
    while pathlib.Path(f"/proc/{started}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not pathlib.Path(f"/proc/{started}").exists()


@pytest.mark.needs_userns
def test_no_limit_of_that_client_binds_the_next_one(started, cli):
    soft = {limit: resource.prlimit(started, limit) for limit in (resource.RLIMIT_FSIZE, resource.RLIMIT_CPU)}
    assert all(now == hard for now, hard in soft.values())
    done = cli("run", "--", "true")
    assert done.returncode == 0, done.stderr


def test_no_descriptor_of_that_client_is_open(started):
    folder = f"/proc/{started}/fd"
    if not os.access(folder, os.R_OK):  # it is closed to everybody but root, as it must be
        assert os.geteuid() != 0
        return
    assert str(FAR) not in os.listdir(folder)


def test_a_client_that_ignores_its_children_is_answered(cli):
    cli("stop")
    done = cli.start("mission", "list", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    _, said = done.communicate(timeout=60)
    assert done.returncode == 0, said
    assert client.request(user_paths(str(cli.root)), "status", start=False)["entries"]
