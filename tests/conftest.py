"""Shared fixtures. Room-specific ones live beside the room's tests."""

import os
import resource
import signal
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

if "/usr/sbin" not in os.environ["PATH"].split(":"):
    os.environ["PATH"] += ":/usr/sbin:/sbin"  # nft and ip, which Debian leaves out of an ordinary user's path

for _number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
    if (
        signal.getsignal(_number) is signal.SIG_IGN
    ):  # started in the background, or by nohup: what tests start would ignore it too
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else lambda *_: None)

# As the supervisor has it: by the soft limit of a shell no descriptor could be sent while a box of the same user holds many.
_hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (_hard, _hard))

# A busy machine makes no test fail; and what a test does with its fixture in one example does not matter to the next.
settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
settings.load_profile("untimed")

_guarded = False


def _watch(event: str, args: tuple[object, ...]) -> None:
    if _guarded and event in {"open", "socket.connect", "subprocess.Popen", "os.system", "os.exec", "os.fork"}:
        raise AssertionError(f"pure code touched the world: {event} {args[:1]}")


sys.addaudithook(_watch)


@pytest.fixture
def no_io() -> Iterator[None]:
    """Fail the test if the code under test opens a file or socket or starts a process."""
    global _guarded
    _guarded = True
    try:
        yield
    finally:
        _guarded = False
