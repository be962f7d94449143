"""Reads the memory of a process of the person with process_vm_readv.

family: processes
arguments: {victim_pid} {victim_address}
judge: loot victim
trace: process_vm_readv
"""

import ctypes
import os
import sys


class Part(ctypes.Structure):
    """A piece of memory, as the call takes it."""

    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]


libc = ctypes.CDLL(None, use_errno=True)
buffer = ctypes.create_string_buffer(40)
local, remote = Part(ctypes.addressof(buffer), 40), Part(int(sys.argv[2]), 30)
got = libc.process_vm_readv(int(sys.argv[1]), ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
print(buffer.value.decode() if got > 0 else os.strerror(ctypes.get_errno()))
