"""Between two workers: whoever knocks is refused at once and counted, so that no program hangs and no try is lost.

Runs in the supervisor, so it reads nothing that a box sends.
"""

import contextlib
import os
import select
import socket
import time
from collections.abc import Callable, Mapping

from ringfence.egress.asking import Refused, Try
from ringfence.egress.relay import LINGER_RESET

UNREAD = "(not read)"
ENTRIES = frozenset({"http-proxy", "socks", "endpoint", "host-port"})
SERVFAIL = b"\x80\x82" + bytes(8)


def turn_away(fds: Mapping[str, int], wake: int, until: float, stopping: Callable[[], bool]) -> list[Refused]:
    """Reset connections and answer names with failure until a moment (monotonic seconds); returns what was refused.

    ``wake`` becomes readable where ``stopping`` may have changed.
    """
    refused: dict[str, int] = {}
    poller = select.poll()
    for name, fd in fds.items():
        if not name.startswith(("nflog", "inbound")):
            poller.register(fd, select.POLLIN)
    poller.register(wake, select.POLLIN)
    names = {fd: name for name, fd in fds.items()}
    while not stopping():
        for fd, _mask in poller.poll(max(0, int((until - time.monotonic()) * 1000))):
            if fd in names and _refuse_one(names[fd], fd):
                refused[names[fd]] = refused.get(names[fd], 0) + 1
        if time.monotonic() >= until:
            break
    return [_told(name, count) for name, count in refused.items()]


def _told(name: str, count: int) -> Refused:
    dns = name.startswith("dns")
    subject = Try(host=UNREAD, port=53 if dns else 0, protocol="dns" if dns else "tcp", entry=_entry(name))
    return Refused(subject=subject, rule="egress/no-worker", because="no egress worker was running", count=count)


def _entry(name: str) -> str:
    """The entry that a descriptor stands for, in the log's words."""
    kind = name.partition(":")[0]
    return {"dns-udp": "dns", "dns-tcp": "dns", "outside": "inbound"}.get(kind, kind if kind in ENTRIES else "capture")


def _refuse_one(name: str, fd: int) -> bool:
    """Refuse the one who knocks; False where nobody does."""
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(fd)) as sock:
        if name == "dns-udp":
            message, peer = sock.recvfrom(4096, socket.MSG_DONTWAIT)
            if len(message) >= 12:
                sock.sendto(message[:2] + SERVFAIL, peer)  # no question
            return True
        accepted, _peer = sock.accept()
        with accepted:
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_RESET)
        return True
    return False
