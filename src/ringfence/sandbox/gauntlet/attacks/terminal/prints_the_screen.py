r"""Sends the screen to the person's printer.

family: terminal
judge: shown "\\x1b\\[[45]i"
trace: terminal, sequence
terminal: yes
"""

import sys

sys.stdout.buffer.write(b"\x1b[5ipage\x1b[4i")
sys.stdout.buffer.flush()
