"""Services across the fence by explicit grant: a port of the host seen in the box, and a port of the box seen outside."""

import ctypes
import os
import socket
import struct
import time
from dataclasses import dataclass

from ringfence.egress.asking import Refused, Try
from ringfence.egress.loop import Loop, Stream, TimedOut
from ringfence.egress.opening import Opening
from ringfence.egress.relay import relay, reset
from ringfence.egress.rules import Host, canonical_host
from ringfence.egress.session import Services, Session

_libc = ctypes.CDLL(None, use_errno=True)


async def host_port(services: Services, client: Stream, port: int, where: tuple[str, int]) -> None:
    """A connection of the box to a granted port of the host."""
    session = Session(
        services=services,
        client=client,
        host=canonical_host("127.0.0.1"),
        port=port,
        entry="host-port",
        source=client.ends()[0],
    )
    sock = socket.socket(socket.AF_INET6 if ":" in where[0] else socket.AF_INET, socket.SOCK_STREAM)
    await _carry(services, session, Stream(services.loop, sock), where)


@dataclass(slots=True)
class Inbound:
    """Sockets made in the box, each good for one connection at a time to a port of the box."""

    loop: Loop
    free: list[int]
    """Descriptors that are neither bound nor connected."""

    async def serve(self, services: Services, client: Stream, port: int, box_port: int) -> None:
        """A connection from the host to a granted port of the box."""
        if not self.free:
            subject = Try(host="box", port=box_port, protocol="tcp", entry="inbound")
            services.link.tell(
                Refused(subject=subject, rule="egress/too-many-open", because="all inbound sockets are in use")
            )
            reset(client)
            return
        descriptor = self.free.pop()
        try:
            box = Stream(self.loop, socket.socket(fileno=os.dup(descriptor)))
            session = Session(services=services, client=client, host=Host(text="box"), port=port, entry="inbound")
            await _carry(services, session, box, ("127.0.0.1", box_port))
        finally:
            if _disconnect(descriptor):
                self.free.append(descriptor)


async def _carry(services: Services, session: Session, other: Stream, where: tuple[str, int]) -> None:
    """Ask (configuration granted it, the log is told), connect, move the bytes."""
    try:
        verdict = await session.ask(Opening(protocol="tcp"))
        if not verdict.allow:
            reset(session.client)
            return
        other.sock.connect_ex(where)
        session.dialled = where[0]
        await other.writable(time.monotonic() + services.dialer.dial_seconds)
        if other.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            session.end("unreachable")
            reset(session.client)
            return
        session.end(await relay(services.loop, session.client, other, session.traffic, idle=services.idle))
    except (OSError, TimedOut):
        reset(session.client)
    finally:
        session.end("reset")
        session.client.close()
        other.close()


def _disconnect(descriptor: int) -> bool:
    """Bring a TCP socket back to unconnected, as connect(AF_UNSPEC) does; it may then be used again."""
    address = struct.pack("=H14x", socket.AF_UNSPEC)
    return int(_libc.connect(descriptor, address, len(address))) == 0
