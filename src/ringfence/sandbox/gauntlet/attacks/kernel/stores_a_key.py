"""Stores bytes in a kernel keyring that outlives it, and reads them back.

family: kernel
arguments: {nonce}
judge: proof "^kept {nonce}"
trace: add_key, keyctl
"""

import ctypes
import os
import sys

ADD, KEYCTL = {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]
libc = ctypes.CDLL(None, use_errno=True)
text = sys.argv[1].encode()
key = libc.syscall(ADD, b"user", b"planted", text, len(text), -3)
if key < 0:
    sys.exit(os.strerror(ctypes.get_errno()))
buffer = ctypes.create_string_buffer(64)
libc.syscall(KEYCTL, 11, key, buffer, 64)
print("kept", buffer.value.decode())
libc.syscall(KEYCTL, 9, key, -3)
