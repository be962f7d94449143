r"""Makes the terminal answer with text that lands in the shell's input.

family: terminal
arguments: {nonce}
judge: shown "\\x1b(\\[21t|P\\$q|\\]52;c;\\?)"
trace: terminal, sequence
terminal: yes
"""

import sys

sys.stdout.buffer.write(b"\x1b[21t\x1bP$qm\x1b\\\\\x1b]52;c;?\x07NONCE".replace(b"NONCE", sys.argv[1].encode()))
sys.stdout.buffer.flush()
