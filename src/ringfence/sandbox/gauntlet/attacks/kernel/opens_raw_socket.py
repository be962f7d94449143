"""Opens a raw socket, to forge packets.

family: kernel
judge: proof "^type 3$"
trace: raw, socket
"""

import socket

with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP) as sock:
    print("type", sock.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE))
