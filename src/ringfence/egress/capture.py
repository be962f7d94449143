"""Listeners of one box: accept, find out where the connection was meant to go, start a session. Counts what it refuses."""

import errno
import ipaddress
import socket
import struct
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from ringfence.egress.asking import Refused, Try
from ringfence.egress.buckets import Bucket
from ringfence.egress.loop import Loop, Stream
from ringfence.egress.names import NameTable
from ringfence.egress.opening import RefusedError
from ringfence.egress.refuse import refusal_bytes
from ringfence.egress.relay import farewell, reset
from ringfence.egress.rules import SYNTHETIC4, SYNTHETIC6, Address, Host, canonical_address
from ringfence.egress.session import Services, Session

SO_ORIGINAL_DST = 80
BATCH = 64
UNREAD = "(not read)"
CAUSES = {
    "egress/rate": "more new connections a second than a mission may open",
    "egress/too-many-open": "more connections at once than a mission may hold",
    "egress/crowded": "the supervisor did not keep up",
}
Start = Callable[[Stream], Coroutine[Any, Any, None]]


@dataclass(slots=True)
class Gate:
    """How much of the box's traffic is taken in at all."""

    loop: Loop
    services: Services
    bucket: Bucket
    open_limit: int
    open: int = 0
    refused: dict[str, int] = field(default_factory=dict)

    def admit(self) -> bool:
        """Whether one more connection is taken; a refused one is counted, by cause."""
        cause = ""
        if not self.bucket.take(time.monotonic()):
            cause = "egress/rate"
        elif self.open >= self.open_limit:
            cause = "egress/too-many-open"
        elif self.services.link.crowded:
            cause = "egress/crowded"
        if cause:
            self.refused[cause] = self.refused.get(cause, 0) + 1
        return not cause

    async def report(self) -> None:
        """Task: tell the counts once a second."""
        while True:
            await self.loop.sleep(1.0)
            self.tell_counts()

    def tell_counts(self) -> None:
        """Tell what was refused since the last time."""
        counts, self.refused = self.refused, {}
        for cause, count in counts.items():
            subject = Try(host=UNREAD, port=0, protocol="tcp", entry="capture")
            self.services.link.tell(Refused(subject=subject, rule=cause, because=CAUSES[cause], count=count))


async def listen(gate: Gate, listener: Stream, start: Start) -> None:
    """Task: accept for ever. An accepted socket that is not admitted is reset at once."""
    turns = 0
    while True:
        try:
            sock, _peer = listener.sock.accept()
        except BlockingIOError:
            await listener.readable()
            continue
        except OSError as error:
            if error.errno in {errno.EBADF, errno.EINVAL}:
                return
            await gate.loop.sleep(0.05)  # out of descriptors or memory: wait for some to be given back
            continue
        stream = Stream(gate.loop, sock)
        if gate.admit():
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            gate.open += 1
            task = gate.loop.spawn(start(stream))
            task.on_done.append(lambda stream=stream: _left(gate, stream))  # type: ignore[misc]
        else:
            reset(stream)
        turns += 1
        if turns % BATCH == 0:
            await gate.loop.breathe()


def _left(gate: Gate, stream: Stream) -> None:
    gate.open -= 1
    stream.close()


def original(sock: socket.socket, listener: str) -> tuple[Address, int]:
    """Address and port that the box connected to."""
    if listener == "tcp4":
        raw = sock.getsockopt(socket.SOL_IP, SO_ORIGINAL_DST, 16)
        return ipaddress.IPv4Address(raw[4:8]), struct.unpack_from(">H", raw, 2)[0]
    if listener == "tcp6":
        raw = sock.getsockopt(socket.IPPROTO_IPV6, SO_ORIGINAL_DST, 28)
        return ipaddress.IPv6Address(raw[8:24]), struct.unpack_from(">H", raw, 2)[0]
    own = sock.getsockname()
    return ipaddress.ip_address(own[0]), own[1]


async def captured(services: Services, names: NameTable, stream: Stream, listener: str) -> None:
    """Session of a captured connection: its name is that of the synthetic address it was made to."""
    raw, port = original(stream.sock, listener)
    address = canonical_address(raw)
    source, target = stream.ends()[0], (str(raw), port)
    name = names.name_of(address)
    if name is None and (address in SYNTHETIC4 or address in SYNTHETIC6):
        subject = Try(host=str(address), port=port, protocol="tcp", entry="capture", source=source, target=target)
        refusal = RefusedError("egress/unknown-synthetic", "no name was given this address in this mission")
        services.link.tell(Refused(subject=subject, rule=refusal.rule, because=refusal.because))
        words = refusal_bytes("tcp", str(address), port, refusal.rule, refusal.because)
        await farewell(stream, words) if words else reset(stream)
        return
    host = Host(text=name) if name is not None else Host(text=str(address), address=address)
    session = Session(
        services=services, client=stream, host=host, port=port, entry="capture", source=source, target=target
    )
    await session.run()
