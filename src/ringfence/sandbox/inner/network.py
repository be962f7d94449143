"""The box's own network: loopback only, every other address led to a listener of ours or refused and logged.

The listeners are made here, in the box's namespace, and handed out; nothing of this process stays behind to be
attacked from inside the box.
"""

import fcntl
import os
import socket
import struct
from typing import Any

from ringfence.sandbox.inner import netlink, nftables

SIOCSIFFLAGS, UP_AND_RUNNING = 0x8914, 0x1 | 0x40
BACKLOG = 4096
NAME_PORT, HTTP_PORT, SOCKS_PORT = 53, 3128, 1080
COMMON_PORTS = (22, 80, 443, 8080, 8443)
"""Captured where there is no nf_tables: any other port answers "refused" by itself."""
INBOUND = 16
SETTINGS = (
    ("net/ipv4/ip_unprivileged_port_start", b"0"),
    ("net/ipv4/icmp_echo_ignore_all", b"1"),
    ("net/ipv6/icmp/echo_ignore_all", b"1"),
)
"""Ports 80 and 443 are the box's own; a ping must not be answered for addresses that are ours only by trick."""


def raise_loopback() -> None:
    """Bring ``lo`` up in this network namespace. Raises OSError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", UP_AND_RUNNING))


def begin() -> None:
    """What every box's network has, whatever it is asked for later. Raises OSError."""
    raise_loopback()
    for name, value in SETTINGS:
        _set(name, value)


def closed() -> dict[str, socket.socket]:
    """No network at all. What is tried is logged where the kernel can; without it there is simply no route."""
    try:
        ends = {"nflog": nftables.log_socket(), "nflog-metadata": nftables.log_socket(nftables.METADATA_GROUP)}
        nftables.apply(None)
        netlink.local_default_routes()
    except OSError:
        return {}
    return ends


def captured(order: dict[str, Any]) -> dict[str, socket.socket]:
    """A network on which somebody answers; gives the sockets to hand out, by name. Raises OSError."""
    sockets = _captured()
    for name, port in (("dns-tcp", NAME_PORT), ("http-proxy", HTTP_PORT), ("socks", SOCKS_PORT)):
        sockets[name] = _listener(socket.AF_INET, ("127.0.0.1", port))
    sockets["dns-udp"] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sockets["dns-udp"].bind(("127.0.0.1", NAME_PORT))
    for name, port in order["endpoints"]:
        sockets[f"endpoint:{name}"] = _listener(socket.AF_INET, ("127.0.0.1", port))
    for port in order["host_ports"]:
        sockets[f"host-port:{port}"] = _listener(socket.AF_INET, ("127.0.0.1", port))
    for number in range(INBOUND if order["inbound"] else 0):
        sockets[f"inbound:{number}"] = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    return sockets


def _captured() -> dict[str, socket.socket]:
    netlink.local_default_routes()
    first = _listener(socket.AF_INET, ("127.0.0.1", 0))
    port = first.getsockname()[1]
    sockets = {"tcp4": first, "tcp6": _listener(socket.AF_INET6, ("::1", port))}
    try:
        sockets["nflog"] = nftables.log_socket()
        nftables.apply(port)
    except OSError:
        for end in sockets.values():
            end.close()
        return _by_port()
    return sockets


def _by_port() -> dict[str, socket.socket]:
    sockets = {}
    for port in COMMON_PORTS:
        sockets[f"any4:{port}"] = _listener(socket.AF_INET, ("0.0.0.0", port))  # noqa: S104  the box's own namespace
        sockets[f"any6:{port}"] = _listener(socket.AF_INET6, ("::", port))
    return sockets


def _listener(family: int, address: tuple[str, int]) -> socket.socket:
    end = socket.socket(family, socket.SOCK_STREAM)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    end.bind(address)
    end.listen(BACKLOG)
    return end


def _set(name: str, value: bytes) -> None:
    try:
        file = os.open(f"/proc/sys/{name}", os.O_WRONLY)
    except FileNotFoundError:
        return  # a kernel without IPv6 needs no IPv6 setting
    try:
        os.write(file, value)
    finally:
        os.close(file)
