r"""Shows a link whose click starts a program.

family: terminal
judge: shown "\\x1b\\]8;;x-man-page:"
trace: terminal, sequence
terminal: yes
"""

import sys

sys.stdout.buffer.write(b"\x1b]8;;x-man-page://;touch\x07look here\x1b]8;;\x07")
sys.stdout.buffer.flush()
