"""Opens the kernel's own ciphers through a socket.

family: kernel
judge: proof "^domain 38$"
trace: af_alg, socket
"""

import socket

with socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET) as sock:
    sock.bind(("hash", "sha256"))
    print("domain", sock.getsockopt(socket.SOL_SOCKET, 39))
