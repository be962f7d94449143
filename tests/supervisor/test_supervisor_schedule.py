"""What is due without a person: a fault of one round does not end the schedule."""

import errno
import os
from types import SimpleNamespace

import pytest

from ringfence.model.errors import LedgerError
from ringfence.supervisor.dispatcher import Dispatcher


@pytest.mark.parametrize(
    "fault", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), LedgerError("ledger-full", "full")]
)
def test_a_round_that_fails_is_told_and_followed_by_the_next(fault, capsys):
    rounds = iter([False, False, True])

    def fail():
        raise fault

    dispatcher = SimpleNamespace(
        _over=SimpleNamespace(wait=lambda _: next(rounds)), _organisation=SimpleNamespace(retention=fail)
    )
    Dispatcher._tick(dispatcher)  # type: ignore[arg-type]  # only what a round looks at
    assert len(capsys.readouterr().err.splitlines()) == 2
