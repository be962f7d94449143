r"""Makes the terminal save a file on the person's machine.

family: terminal
arguments: {nonce}
judge: shown "\\x1b\\]1337;File"
trace: terminal, sequence
terminal: yes
"""

import sys

sys.stdout.buffer.write(
    b"\x1b]1337;File=name=TlVMTA==;size=4:TlVMTA==NONCE\x07".replace(b"NONCE", sys.argv[1].encode())
)
sys.stdout.buffer.flush()
