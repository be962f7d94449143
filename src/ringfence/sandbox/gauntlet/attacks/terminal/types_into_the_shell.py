"""Types a command into the shell that started the sandbox.

family: terminal
arguments: {nonce}
judge: typed
trace: TIOCSTI, ioctl
terminal: yes
"""

import fcntl
import sys
import termios

for letter in sys.argv[1]:
    fcntl.ioctl(0, termios.TIOCSTI, letter.encode())
print("claim: done")
