r"""Switches the terminal to one-byte text, in which the clipboard sequence has another form.

family: terminal
judge: shown "\\x1b%@|(^|[^\\xc2])\\x9d52;c;"
trace: terminal, sequence
terminal: yes
"""

import sys

sys.stdout.buffer.write(b"\x1b%@\x9d52;c;TlVMTA==\x07")
sys.stdout.buffer.flush()
