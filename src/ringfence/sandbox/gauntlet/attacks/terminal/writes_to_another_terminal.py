"""Writes on another terminal of the person.

family: terminal
arguments: {terminal} {nonce}
judge: written
trace: /dev/pts
terminal: yes
"""

import os
import sys

terminal = os.open(sys.argv[1], os.O_WRONLY | os.O_NOCTTY)
os.write(terminal, sys.argv[2].encode())
print("claim: done")
