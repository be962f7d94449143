r"""Sets the title by the sequence of terminal multiplexers.

family: terminal
judge: shown "\\x1bk"
trace: terminal, sequence
terminal: yes
"""

import sys

sys.stdout.buffer.write(b"\x1bkyours\x1b\\")
sys.stdout.buffer.flush()
