"""Opens a socket to the machine that this machine runs on.

family: kernel
judge: proof "^domain 40$"
trace: vsock, socket
"""

import socket

with socket.socket(40, socket.SOCK_STREAM) as sock:
    print("domain", sock.getsockopt(socket.SOL_SOCKET, 39))
