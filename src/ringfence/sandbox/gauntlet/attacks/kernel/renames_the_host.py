"""Gives the host another name.

family: kernel
arguments: {nonce}
judge: renamed
trace: sethostname
"""

import socket
import sys

socket.sethostname(sys.argv[1])
print("claim: done")
