"""What a box without network tried to reach, as the kernel logged it: protocol, address, port, names asked for."""

import errno
import os
import socket
import struct
from collections.abc import Callable

from ringfence.sandbox.inner.loop import READ, Loop

PAYLOAD, PREFIX, SEQUENCE = 9, 10, 12
NUMBERS = 1 << 32
LOST = "more than could be logged"
TCP = 6
PROTOCOLS = {1: "icmp", 6: "tcp", 17: "udp", 58: "icmp", 132: "sctp", 136: "udplite"}
METADATA = frozenset({
    "169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254",
    "fd00:ec2::23", "fd20:ce::254", "fd00:42::42",
})  # fmt: skip
"""Where clouds answer with credentials."""
ROUNDS = 64


class Refusals:
    """The log sockets of one box's network. ``told`` gets kind, detail and count of what was refused."""

    def __init__(self, loop: Loop, descriptors: list[int], told: Callable[[str, str, int], None]) -> None:
        self.loop, self.told = loop, told
        self.next = dict.fromkeys(descriptors, 0)
        """By socket: the number that the kernel gives to its next packet."""
        self.lost: set[int] = set()
        """Sockets whose buffer ran over, where no later packet has shown yet how many are missing."""
        for descriptor in descriptors:
            os.set_blocking(descriptor, False)
            self._watch(descriptor)

    def _watch(self, end: int) -> None:
        def ready(_events: int) -> None:
            self._read(end)

        self.loop.watch(end, READ, ready)

    def _read(self, end: int) -> bool:
        """One turn; gives whether there may be more."""
        for _round in range(ROUNDS):
            try:
                data = os.read(end, 65536)
            except OSError as fault:
                if fault.errno != errno.ENOBUFS:
                    return False
                self.lost.add(end)
                continue
            for number, seen in packets(data):
                self._count(end, number)
                if seen is not None:
                    self.told(*seen, 1)
        return True

    def _count(self, end: int, number: int) -> None:
        missing = (number - self.next[end]) % NUMBERS
        self.next[end] = (number + 1) % NUMBERS
        if missing:
            self.lost.discard(end)
            self.told("egress", LOST, missing)

    def drain(self) -> None:
        """Read what is still queued."""
        for end in self.next:
            while self._read(end):
                pass
        for _end in self.lost:
            self.told("egress", LOST, 1)
        self.lost.clear()

    def close(self) -> None:
        """Let go: an open socket would keep the box's network alive."""
        for descriptor in self.next:
            self.loop.forget(descriptor)
            os.close(descriptor)
        self.next.clear()


def packets(data: bytes) -> list[tuple[int, tuple[str, str] | None]]:
    """Number, and kind and detail, of every packet in what was read. Never raises: the packet inside is the box's own making."""
    found, position = [], 0
    while position + 20 <= len(data):
        (length,) = struct.unpack_from("=I", data, position)
        if length < 20 or position + length > len(data):
            break
        fields = _attributes(data[position + 20 : position + length])
        number = int.from_bytes(fields.get(SEQUENCE, b"")[:4], "big")
        found.append((number, describe(fields.get(PAYLOAD, b""), fields.get(PREFIX, b"").rstrip(b"\0"))))
        position += (length + 3) & ~3
    return found


def describe(packet: bytes, prefix: bytes) -> tuple[str, str] | None:
    """What one packet was: ``floor`` for a metadata address, else ``egress``."""
    if len(packet) >= 20 and packet[0] >> 4 == 4:
        head, protocol, target = (packet[0] & 15) * 4, packet[9], socket.inet_ntop(socket.AF_INET, packet[16:20])
    elif len(packet) >= 40 and packet[0] >> 4 == 6:
        head, protocol, target = 40, packet[6], socket.inet_ntop(socket.AF_INET6, packet[24:40])
    else:
        return None
    if prefix == b"rf-name":
        return ("egress", f"name {_question(packet[head + 8 :])}")
    if prefix == b"rf-local":
        return _nobody_listens(packet, head, protocol, target)
    word = PROTOCOLS.get(protocol, f"protocol {protocol}")
    ported = word in {"tcp", "udp", "sctp", "udplite"} and len(packet) >= head + 4
    port = f" port {struct.unpack_from('>H', packet, head + 2)[0]}" if ported else ""
    return ("floor" if target in METADATA else "egress", f"{word} {target}{port}")


def _nobody_listens(packet: bytes, head: int, protocol: int, target: str) -> tuple[str, str] | None:
    """A reset names the port it comes from; an "unreachable" carries the packet that it answers."""
    if protocol == TCP:
        word, place = "tcp", head
    else:
        inner = head + 8
        if len(packet) <= inner:
            return None
        size = (packet[inner] & 15) * 4 if packet[inner] >> 4 == 4 else 40
        word, place = "udp", inner + size + 2
    if len(packet) < place + 2:
        return None
    return ("egress", f"{word} {target} port {struct.unpack_from('>H', packet, place)[0]}, nobody listens")


def _question(message: bytes) -> str:
    """The name asked for, as far as the logged head shows it."""
    labels, position = [], 12
    while position < len(message) and 0 < message[position] < 64:
        labels.append(ascii(message[position + 1 : position + 1 + message[position]].decode("latin-1"))[1:-1])
        position += 1 + message[position]
    return ".".join(labels) or "(unreadable)"


def _attributes(data: bytes) -> dict[int, bytes]:
    found, position = {}, 0
    while position + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, position)
        if length < 4 or position + length > len(data):
            break
        found[kind & 0x3FFF] = data[position + 4 : position + length]
        position += (length + 3) & ~3
    return found
