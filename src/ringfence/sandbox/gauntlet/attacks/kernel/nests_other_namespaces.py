"""Makes namespaces of the other kinds: mounts, network, processes, names, clocks, control groups.

family: kernel
judge: proof "^made"
trace: unshare
"""

import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
for flag in (0x00020000, 0x40000000, 0x20000000, 0x08000000, 0x04000000, 0x02000000, 0x00000080):
    if os.fork() == 0:
        print("made" if libc.unshare(flag) == 0 else "refused", hex(flag), flush=True)
        os._exit(0)
    os.wait()
