"""Reads a key out of the kernel keyring that the sandbox was started with.

family: secrets
arguments: gauntlet-{nonce}
judge: loot keyring
trace: keyctl
"""

import ctypes
import os
import sys

KEYCTL = {"x86_64": 250, "aarch64": 219}[os.uname().machine]
SEARCH, READ = 10, 11
libc = ctypes.CDLL(None, use_errno=True)
for keyring in (-3, -4, -5, -2, -1):
    key = libc.syscall(KEYCTL, SEARCH, keyring, b"user", sys.argv[1].encode(), 0)
    buffer = ctypes.create_string_buffer(256)
    if key > 0 and libc.syscall(KEYCTL, READ, key, buffer, 256) > 0:
        print(buffer.value.decode())
