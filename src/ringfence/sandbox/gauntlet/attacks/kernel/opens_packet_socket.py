"""Opens a packet socket, to listen to and forge frames.

family: kernel
judge: proof "^domain 17$"
trace: packet, socket
"""

import socket

with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3) as sock:
    print("domain", sock.getsockopt(socket.SOL_SOCKET, 39))
