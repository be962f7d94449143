"""A command that failed for the fence's sake says so, where its own words do not."""

from types import SimpleNamespace

import pytest

from ringfence.model.box import Control, ControlState, Observation
from ringfence.supervisor.wording import hints


def test_a_limit_that_was_reached_is_named_unless_it_ended_the_command():
    seen = [Observation(kind="limit", detail="processes, 64"), Observation(kind="limit", detail="runtime, 5 ms")]
    ran = SimpleNamespace(observations=seen, ended_by="runtime, 5 ms", controls=())
    assert list(hints(ran)) == ["ringfence: a limit of the policy was reached: processes, 64"]


@pytest.mark.needs_userns
@pytest.mark.parametrize(("ending", "said"), [("exit 4", True), ("exit 0", False)])
def test_tracing_is_named_where_the_command_failed(cli, ending, said):
    cli.task(f"python3 -c 'import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0)'; {ending}\n")
    done = cli("run", "--", "sh", "task.sh")
    assert ("ringfence: tracing was refused" in done.stderr) is said


def test_what_was_tried_without_network_is_named_and_the_boxs_own_loopback_is_not():
    tried = ["tcp 127.0.0.1 port 80, nobody listens", "name example.com", "udp 192.0.2.1 port 53"]
    seen = [Observation(kind="egress", detail=detail) for detail in tried]
    off, on = (Control(name="egress-log", state=ControlState.ENFORCED, detail=detail) for detail in ("none", "rules"))
    said = list(hints(SimpleNamespace(observations=seen, ended_by="", controls=(off,))))
    assert said[0] == "ringfence: this command has no network, and tried name example.com and 1 more"
    assert said[1].startswith("  fix: ")
    assert list(hints(SimpleNamespace(observations=seen[:1], ended_by="", controls=(off,)))) == []
    assert list(hints(SimpleNamespace(observations=seen, ended_by="", controls=(on,)))) == []
    floor = [Observation(kind="floor", detail="tcp 169.254.169.254 port 80")]
    assert "no rule opens" in list(hints(SimpleNamespace(observations=floor, ended_by="", controls=(off,))))[1]


@pytest.mark.needs_userns
@pytest.mark.parametrize(("ending", "said"), [("exit 4", True), ("exit 0", False)])
def test_no_network_is_named_where_the_command_failed(cli, ending, said):
    cli.task(f"python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80))' 2> /dev/null; {ending}\n")
    done = cli("run", "--", "sh", "task.sh")
    assert ("has no network, and tried tcp 192.0.2.1 port 80\n  fix: " in done.stderr) is said
