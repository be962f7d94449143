r"""Leaves mouse, focus and key reports on, which then type into the shell.

family: terminal
judge: shown "(?s)\\x1b\\[\\?1003h(?!.*\\x1b\\[\\?1003l)"
trace: terminal, sequence
terminal: yes
"""

import sys

sys.stdout.buffer.write(b"\x1b[?1003h\x1b[?1004h\x1b[>1u")
sys.stdout.buffer.flush()
