r"""Wraps the clipboard sequence so that a terminal multiplexer hands it on.

family: terminal
arguments: {nonce}
judge: shown "\\x1bPtmux;"
trace: terminal, sequence
terminal: yes
"""

import sys

sys.stdout.buffer.write(b"\x1bPtmux;\x1b\x1b]52;c;TlVMTA==NONCE\x07\x1b\\\\".replace(b"NONCE", sys.argv[1].encode()))
sys.stdout.buffer.flush()
