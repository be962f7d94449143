"""Work that nobody waits for: in order, a fault in one piece stops no other, and the end waits for all of it."""

import threading

from ringfence.supervisor import later
from ringfence.supervisor.later import Later


def test_all_of_it_is_done_in_order_whatever_fails(capsys):
    later, done = Later(), []

    def fails():
        raise RuntimeError("told in the log")

    later.do(lambda: done.append(1))
    later.do(fails)
    later.do(lambda: done.append(2))
    later.close()
    assert done == [1, 2]
    assert "told in the log" in capsys.readouterr().err
    later.do(lambda: done.append(3))
    later.close()
    assert done == [1, 2, 3]


def test_what_takes_too_long_does_not_keep_the_end_waiting(capsys, monkeypatch):
    monkeypatch.setattr(later, "END_SECONDS", 0.1)
    work, go, done = later.Later(), threading.Event(), threading.Event()
    work.do(lambda: go.wait(60) and done.set())
    work.close()
    assert "not all removed" in capsys.readouterr().err
    go.set()
    assert done.wait(60)
