"""What the box's fence refused without a connection: UDP, ping, odd protocols, as the kernel logged it."""

import ipaddress
import struct
from dataclasses import dataclass

from ringfence.egress.asking import Refused, Try
from ringfence.egress.link import Link
from ringfence.egress.loop import Stream
from ringfence.egress.names import NameTable

PACKET = (4 << 8) | 0
ATTR_PAYLOAD, ATTR_PREFIX = 9, 10
UNREAD = "(not read)"
PROTOCOLS = {1: "icmp", 6: "tcp", 17: "udp", 58: "icmp", 132: "sctp", 136: "udplite"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged:
    """One refused packet. ``port`` is 0 where the protocol has none."""

    protocol: str
    source: tuple[str, int]
    target: tuple[str, int]


def read_packets(message: bytes) -> list[Logged]:
    """The refused packets of one netlink message. The kernel frames it; the packet inside is the box's, cut to 128 bytes."""
    found = []
    at = 0
    while at + 16 <= len(message):
        length, kind = struct.unpack_from("=IH", message, at)
        if length < 16 or at + length > len(message):
            break
        if kind == PACKET:
            attributes = _attributes(message[at + 20 : at + length])
            packet = read_packet(attributes.get(ATTR_PAYLOAD, b""))
            if packet is not None:
                found.append(packet)
        at += (length + 3) & ~3
    return found


def read_packet(data: bytes) -> Logged | None:
    """Addresses, ports and protocol of an IP packet's head, or ``None``."""
    if len(data) >= 20 and data[0] >> 4 == 4:
        end = (data[0] & 15) * 4
        protocol, source, target = data[9], data[12:16], data[16:20]
    elif len(data) >= 40 and data[0] >> 4 == 6:
        end, protocol, source, target = 40, data[6], data[8:24], data[24:40]
    else:
        return None
    ports = struct.unpack_from(">HH", data, end) if protocol in {6, 17, 132, 136} and len(data) >= end + 4 else (0, 0)
    return Logged(
        protocol=PROTOCOLS.get(protocol, f"ip-{protocol}"),
        source=(str(ipaddress.ip_address(source)), ports[0]),
        target=(str(ipaddress.ip_address(target)), ports[1]),
    )


async def watch(stream: Stream, link: Link, names: NameTable) -> None:
    """Task: tell of every refused packet, repeated ones in one message a round."""
    skipped = 0
    while True:
        try:
            message = stream.sock.recv(65_536)
        except BlockingIOError:
            await stream.readable()
            continue
        except OSError:
            if stream.closed:
                return
            skipped += 1  # ENOBUFS: a flood ran over the socket's buffer; at least one went unseen
            continue
        packets = read_packets(message)
        if link.crowded:
            skipped += len(packets)
            continue
        if skipped:
            _tell(link, Logged(protocol="udp", source=("", 0), target=(UNREAD, 0)), None, count=skipped)
            skipped = 0
        for packet in packets:
            _tell(link, packet, names.name_of(ipaddress.ip_address(packet.target[0])))


def _tell(link: Link, packet: Logged, name: str | None, *, count: int = 1) -> None:
    subject = Try(
        host=name or packet.target[0],
        port=packet.target[1],
        protocol=packet.protocol,
        entry="nflog",
        address="" if name else packet.target[0],
        source=packet.source,
        target=packet.target,
    )
    rule = "egress/icmp" if packet.protocol == "icmp" else "egress/udp"
    because = f"{packet.protocol} does not leave a box; names are answered inside, HTTP/3 falls back to TCP"
    link.tell(Refused(subject=subject, rule=rule, because=because, count=count))


def _attributes(data: bytes) -> dict[int, bytes]:
    found = {}
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        if length < 4 or at + length > len(data):
            break
        found[kind & 0x7FFF] = data[at + 4 : at + length]
        at += (length + 3) & ~3
    return found
