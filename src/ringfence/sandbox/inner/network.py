"""The box's own network: loopback up, nothing else there."""

import fcntl
import socket
import struct

SIOCSIFFLAGS, UP_AND_RUNNING = 0x8914, 0x1 | 0x40


def raise_loopback() -> None:
    """Bring ``lo`` up in this network namespace. Raises OSError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", UP_AND_RUNNING))
