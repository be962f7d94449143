"""Attaches a shared-memory segment of another program.

family: processes
arguments: {shm}
judge: loot shm
trace: shmat
"""

import ctypes
import sys

libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
libc.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
address = libc.shmat(int(sys.argv[1]), None, 0o10000)
if address not in (None, 2**64 - 1):
    print(ctypes.string_at(address, 64).split(b"\0")[0].decode(errors="replace"))
