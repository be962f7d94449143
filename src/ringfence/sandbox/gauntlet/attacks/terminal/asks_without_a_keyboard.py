r"""Asks for the cursor's place where it could never read the answer: it would be typed into the shell.

family: terminal
judge: shown "\\x1b\\[6n"
trace: terminal, sequence
terminal: output
"""

import sys

sys.stdout.buffer.write(b"\x1b[6n")
sys.stdout.buffer.flush()
