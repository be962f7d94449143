r"""Leaves the colour on in which nothing can be read.

family: terminal
judge: shown "(?s)\\x1b\\[8m(?!.*\\x1b\\[0?m)"
trace: terminal, sequence
terminal: yes
"""

import sys

sys.stdout.buffer.write(b"\x1b[8m")
sys.stdout.buffer.flush()
