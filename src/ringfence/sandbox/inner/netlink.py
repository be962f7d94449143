"""Netlink messages, built and sent: routes and netfilter settings without starting a program for them."""

import os
import socket
import struct
from collections.abc import Sequence

ROUTE, NETFILTER = 0, 12
REQUEST, ACKNOWLEDGE, CREATE, APPEND = 1, 4, 0x400, 0x800
NESTED = 0x8000
ERROR = 2

Value = bytes | int | str | Sequence["tuple[int, Value]"]


def attribute(kind: int, value: "Value") -> bytes:
    """One attribute, padded: bytes as they are, a str with its NUL, an int as 32 bits big-endian, pairs as a nest."""
    if isinstance(value, int):
        body = struct.pack(">i", value)
    elif isinstance(value, str):
        body = value.encode() + b"\0"
    elif isinstance(value, bytes):
        body = value
    else:
        kind |= NESTED
        body = b"".join(attribute(*pair) for pair in value)
    return struct.pack("=HH", 4 + len(body), kind) + body + bytes(-len(body) % 4)


def message(kind: int, flags: int, body: bytes) -> bytes:
    """One message with its header."""
    return struct.pack("=IHHII", 16 + len(body), kind, REQUEST | flags, 1, 0) + body


def ask(end: socket.socket, data: bytes, answers: int) -> None:
    """Send messages and read that many acknowledgements. Raises OSError with the kernel's errno for the first refusal."""
    end.send(data)
    seen = 0
    while seen < answers:
        reply = end.recv(65536)
        position = 0
        while position + 16 <= len(reply):
            length, kind = struct.unpack_from("=IH", reply, position)
            if kind == ERROR:
                number = -struct.unpack_from("=i", reply, position + 16)[0]
                if number:
                    raise OSError(number, os.strerror(number), "netlink")
                seen += 1
            position += (length + 3) & ~3


def local_default_routes() -> None:
    """Every address, IPv4 and IPv6, becomes one of this namespace's own. Raises OSError."""
    new_route, table_local, boot, host, local, out_interface, loopback = 24, 255, 3, 254, 2, 4, 1
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, ROUTE) as end:
        end.settimeout(5)
        for family in (socket.AF_INET, socket.AF_INET6):
            body = struct.pack("=BBBBBBBBI", family, 0, 0, 0, table_local, boot, host, local, 0)
            body += attribute(out_interface, struct.pack("=I", loopback))
            ask(end, message(new_route, ACKNOWLEDGE | CREATE, body), 1)
