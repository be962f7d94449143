r"""Writes into the window's title, from where some terminals answer it back as input.

family: terminal
arguments: {nonce}
judge: shown "\\x1b\\][02];n"
trace: terminal, sequence
terminal: yes
"""

import sys

sys.stdout.buffer.write(b"\x1b]2;NONCE\x07".replace(b"NONCE", sys.argv[1].encode()))
sys.stdout.buffer.flush()
