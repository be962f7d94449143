"""Puts a filter of its own over a child, that lets through whatever it is asked about, and makes a namespace below it.

family: kernel
judge: nested
trace: unshare
"""

import ctypes
import os
import struct
import threading
import time

PRCTL, SECCOMP, UNSHARE = {"x86_64": (157, 317, 272), "aarch64": (167, 277, 97)}[os.uname().machine]
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
code = struct.pack("<HBBI", 0x20, 0, 0, 0) + struct.pack("<HBBI", 0x15, 0, 1, UNSHARE)
code += struct.pack("<HBBI", 0x06, 0, 0, 0x7FC00000) + struct.pack("<HBBI", 0x06, 0, 0, 0x7FFF0000)
held = ctypes.create_string_buffer(code)
listener = libc.syscall(SECCOMP, 1, 8, struct.pack("<HxxxxxxQ", 4, ctypes.addressof(held)))
if listener < 0:
    print(os.strerror(ctypes.get_errno()))


def let_through() -> None:
    """Answer the first call that the child is held in: go on."""
    import fcntl

    asked = bytearray(80)
    fcntl.ioctl(listener, 0xC0502100, asked)
    fcntl.ioctl(listener, 0xC0182101, struct.pack("<QqiI", struct.unpack_from("<Q", asked)[0], 0, 0, 1))


if listener >= 0:
    threading.Thread(target=let_through, daemon=True).start()
pid = os.fork()
if pid == 0:
    made = libc.unshare(0x10000000) == 0
    print("made" if made else os.strerror(ctypes.get_errno()), flush=True)
    time.sleep(0.5)
    os._exit(0)
os.waitpid(pid, 0)
