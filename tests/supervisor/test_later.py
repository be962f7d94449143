"""Work that nobody waits for: in order, a fault in one piece stops no other, and the end waits for all of it."""

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
