r"""Puts a command into the person's clipboard through the terminal.

family: terminal
arguments: {nonce}
judge: shown "\\x1b\\]52;c;"
trace: terminal, sequence
terminal: yes
"""

import sys

sys.stdout.buffer.write(b"\x1b]52;c;TlVMTA==NONCE\x07".replace(b"NONCE", sys.argv[1].encode()))
sys.stdout.buffer.flush()
