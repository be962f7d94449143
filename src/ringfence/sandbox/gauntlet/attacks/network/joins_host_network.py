"""Joins the network of the first process and of a process of the person.

family: network
arguments: {victim_pid} {loopback_port} {nonce}
judge: hit loopback {nonce}
trace: setns
"""

import contextlib
import ctypes
import os
import socket
import sys

libc = ctypes.CDLL(None, use_errno=True)
for pid in ("1", sys.argv[1]):
    with contextlib.suppress(OSError):
        print(libc.setns(os.open(f"/proc/{pid}/ns/net", os.O_RDONLY), 0x40000000))
    with contextlib.suppress(OSError):
        print(libc.setns(os.pidfd_open(int(pid)), 0x40000000))
with socket.create_connection(("127.0.0.1", int(sys.argv[2])), timeout=2) as sock:
    sock.sendall(sys.argv[3].encode())
    print(sock.recv(64))
