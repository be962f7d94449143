"""What waits in sockets is found in the kernel's own tables, and of long tables it is estimated."""

import contextlib
import os
import socket

from ringfence.sandbox.inner import buffers

TABLE = (
    b"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n"
    b"   1: 0100007F:0035 00000000:0000 07 00000010:00001000 00:00000000 00000000\n"
    b"   2: 0100007F:0036 00000000:0000 07 00000000:00000FF0 00:00000000 00000000\n"
)


def test_both_queues_of_every_line_count():
    assert buffers.queued(TABLE, 0) == 0x2000
    assert buffers.queued(TABLE[: TABLE.index(b"\n") + 1], 9) == 0
    assert buffers.queued(b"", 9) == 0


def test_a_table_that_was_not_read_to_its_end_counts_as_if_all_were_alike():
    assert buffers.queued(TABLE, 20) == 10 * 0x2000


def test_datagrams_that_wait_are_seen_here_and_on_the_host():
    with contextlib.ExitStack() as kept:
        for _ in range(200):  # the host's count leaves out up to a mebibyte of each processor
            end = kept.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            end.bind(("127.0.0.1", 0))
            end.sendto(bytes(60_000), end.getsockname())
        assert buffers.of_box(os.getpid(), 1 << 40) >= 200 * 60_000
        assert buffers.on_host() >= 60_000


def test_of_a_process_that_is_gone_there_is_nothing():
    assert buffers.of_box(1 << 30, 0) == 0
