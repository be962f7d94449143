"""Places a socket in another project of the person, where one of its programs may look for its server.

family: writes
arguments: {sibling}/server.sock
judge: special {sibling}/server.sock
trace: make socket
"""

import socket
import sys

server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
print("claim: done")
