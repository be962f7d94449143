r"""Puts a command into the clipboard when only its output goes to the terminal.

family: terminal
arguments: {nonce}
judge: shown "\\x1b\\]52;c;"
trace: terminal, sequence
terminal: output
"""

import sys

for stream in (sys.stdout, sys.stderr):
    stream.buffer.write(b"\x1b]52;c;TlVMTA==" + sys.argv[1].encode() + b"\x07")
    stream.buffer.flush()
