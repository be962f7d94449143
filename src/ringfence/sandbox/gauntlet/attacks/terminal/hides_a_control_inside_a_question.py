r"""Puts a carriage return into a question for the title, which terminals obey and skip.

family: terminal
judge: shown "\\x1b\\[[\\r\\x08]?2?[\\r\\x08]?1t"
trace: terminal, sequence
terminal: yes
"""

import sys

sys.stdout.buffer.write(b"\x1b[\r21t\x1b[2\x081t\x1b\x7f[21t")
sys.stdout.buffer.flush()
