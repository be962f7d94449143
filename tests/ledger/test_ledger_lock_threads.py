"""One writer a ledger also among the threads of one process, for which a record lock means nothing."""

import errno
import os
import subprocess
import sys
import threading

from ringfence.ledger import start
from ringfence.model.errors import LedgerError


def test_who_may_only_read_sees_that_a_writer_is_at_work(tmp_path, monkeypatch):
    script = (
        "import sys; from ringfence.ledger.log import Ledger; Ledger.open(sys.argv[1]); print(1, flush=True); input()"
    )
    writer = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert writer.stdout.readline() == b"1\n"
        real_open = os.open

        def read_only(path, flags, *more, **named):
            if flags & (os.O_WRONLY | os.O_RDWR):
                raise OSError(errno.EROFS, os.strerror(errno.EROFS))
            return real_open(path, flags, *more, **named)

        monkeypatch.setattr(os, "open", read_only)
        assert start.locked(str(tmp_path))
    finally:
        monkeypatch.undo()
        writer.communicate(b"\n", timeout=60)
    assert not start.locked(str(tmp_path))


def test_never_two_threads_hold_a_ledger(tmp_path):
    inside, most, entered = [0], [0], [0]
    count = threading.Lock()

    def work() -> None:
        for _ in range(200):
            try:
                lock = start.acquire(str(tmp_path))
            except LedgerError:  # ledger-busy: another thread has it
                continue
            with count:
                inside[0] += 1
                entered[0] += 1
                most[0] = max(most[0], inside[0])
            start.locked(str(tmp_path))
            with count:
                inside[0] -= 1
            start.release(str(tmp_path), lock)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert entered[0] > 0
    assert most[0] == 1
