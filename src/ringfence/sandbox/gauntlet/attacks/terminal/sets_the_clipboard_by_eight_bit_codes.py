r"""Puts a command into the clipboard with the one-byte form of the sequence.

family: terminal
arguments: {nonce}
judge: shown "\\xc2\\x9d52;c;"
trace: terminal, sequence
terminal: yes
"""

import sys

sys.stdout.buffer.write(b"\xc2\x9d52;c;TlVMTA==NONCE\xc2\x9c".replace(b"NONCE", sys.argv[1].encode()))
sys.stdout.buffer.flush()
