r"""Ends a harmless link in the middle, and has the rest read as another sequence.

family: terminal
judge: shown "\\x1b\\]8;[^\\x07]*\\xc2\\x9d52;c;"
trace: terminal, sequence
terminal: yes
"""

import sys

sys.stdout.buffer.write(
    b"\x1b]8;;https://example.org\x18\xc2\x9d52;c;TlVMTA==\x07\x1b]8;;x\xc2\x9c\xc2\x9d52;c;TlVMTA==\x07"
)
sys.stdout.buffer.flush()
