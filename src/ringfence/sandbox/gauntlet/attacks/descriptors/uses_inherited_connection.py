"""Speaks over a connection to the container engine that the launcher had left open.

family: descriptors
arguments: {nonce}
judge: hit docker {nonce}
trace: inherited descriptor
descriptors: listener
"""

import contextlib
import os
import sys

for number in range(3, 256):
    with contextlib.suppress(OSError):
        os.write(number, sys.argv[1].encode())
