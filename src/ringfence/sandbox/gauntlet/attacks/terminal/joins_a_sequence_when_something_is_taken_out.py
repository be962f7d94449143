r"""Hides the clipboard sequence round parts that a filter takes out, so that the rest joins.

family: terminal
judge: shown "\\x1b(\\x05|\\x1bZ|\\x1b\\[5n)?\\]52;c;"
trace: terminal, sequence
terminal: yes
"""

import sys

sys.stdout.buffer.write(b"\x1b\x05]52;c;TlVMTA==\x07\x1b\x1bZ]52;c;TlVMTA==\x07\x1b\x1b[5n]52;c;TlVMTA==\x07")
sys.stdout.buffer.flush()
