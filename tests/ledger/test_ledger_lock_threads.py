"""One writer a ledger also among the threads of one process, for which a record lock means nothing."""

import sys
import threading

from ringfence.ledger import start
from ringfence.model.errors import LedgerError


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
