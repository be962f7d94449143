"""A command that failed for the fence's sake says so, where its own words do not."""

from types import SimpleNamespace

import pytest

from ringfence.model.box import Observation
from ringfence.supervisor.wording import hints


def test_a_limit_that_was_reached_is_named_unless_it_ended_the_command():
    seen = [Observation(kind="limit", detail="processes, 64"), Observation(kind="limit", detail="runtime, 5 ms")]
    ran = SimpleNamespace(observations=seen, ended_by="runtime, 5 ms")
    assert list(hints(ran)) == ["ringfence: a limit of the policy was reached: processes, 64"]


@pytest.mark.needs_userns
@pytest.mark.parametrize(("ending", "said"), [("exit 4", True), ("exit 0", False)])
def test_tracing_is_named_where_the_command_failed(cli, ending, said):
    cli.task(f"python3 -c 'import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0)'; {ending}\n")
    done = cli("run", "--", "sh", "task.sh")
    assert ("ringfence: tracing was refused" in done.stderr) is said
