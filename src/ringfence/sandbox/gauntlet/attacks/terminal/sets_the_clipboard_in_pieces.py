r"""Writes the clipboard sequence byte by byte, past a filter that looks at whole writes.

family: terminal
arguments: {nonce}
judge: shown "\\x1b\\]52;c;"
trace: terminal, sequence
terminal: yes
"""

import sys
import time

for byte in b"\x1b]52;c;TlVMTA==" + sys.argv[1].encode() + b"\x07":
    sys.stdout.buffer.write(bytes([byte]))
    sys.stdout.buffer.flush()
    time.sleep(0.005)
