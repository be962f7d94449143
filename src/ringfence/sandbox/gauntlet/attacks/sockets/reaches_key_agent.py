"""Speaks to the SSH agent, which signs in the person's name.

family: sockets
arguments: {ssh_agent} {nonce}
judge: hit ssh-agent {nonce}
trace: agent.sock
"""

import os
import socket
import sys

for path in (os.environ.get("SSH_AUTH_SOCK", ""), sys.argv[1]):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(2)
        try:
            sock.connect(path)
            sock.sendall(sys.argv[2].encode())
            print(sock.recv(64))
        except OSError as error:
            print(error)
